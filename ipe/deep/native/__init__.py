"""The networks' products in C, compiled on the machine that trains.

XLA's products of 32 rows reach two thirds of the speed of one core, and the passes over parameters between them take as
long again. Here a seed's layers are multiplied with everything that goes with them: biases, rectifiers, and RMSprop,
whose roots are taken while the next products are added up. Images are convolved without their zeros.

A run uses these products where GCC is installed. Without GCC, and for networks that this room does not compute
(`ipe.deep.native.library.reason`), it uses XLA's. The two differ in rounding alone. A run's checkpoints and records say
which of them it used.
"""
