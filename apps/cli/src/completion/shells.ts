/** The supported shells. */
export const shells = ["bash", "zsh", "fish"] as const;

/** One of the supported shells. */
export type Shell = (typeof shells)[number];

/** The candidate that makes the shell complete a file name. */
export const fileCandidate = ":files";
