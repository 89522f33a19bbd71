/* All of the mathematics, for node. */

export * from "./algorithm.js";
export * from "./entropy.js";
export * from "./lift.js";
export * from "./model.js";
export * from "./polytope.js";
export * from "./random.js";
export * from "./values.js";
