"""The networks' products in C, compiled on the machine that trains.

XLA's products of 32 rows reach two thirds of the speed of one core, and the passes over parameters between them take as
long again. Here a seed's layers are multiplied with everything that goes with them: biases, rectifiers, and RMSprop,
whose roots are taken while the next products are added up. Images are convolved without their zeros.

Used where GCC is to be had; elsewhere, and for what it does not do (`ipe.deep.native.library.reason`), the products are
XLA's. The two differ in rounding alone. Which one a run has used is part of its checkpoints and its records.
"""
