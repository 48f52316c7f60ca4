export { commentOf } from "./comment-of.ts";
export { longestComment } from "./comment-text.ts";
export { keptComments } from "./kept-comments.ts";
export type { Described } from "./source-path.ts";
