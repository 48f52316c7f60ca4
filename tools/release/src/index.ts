export { manifestProblems } from "./manifest-problems.ts";
export { publishingProblems, typeProblems } from "./package-checks.ts";
export { type Published, packAll, published, root } from "./packages.ts";
export { publishAll, type Registry } from "./publish.ts";
