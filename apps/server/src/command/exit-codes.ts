/** The exit codes of the process. */
export const exitCodes = { stopped: 0, failed: 1, usage: 2 } as const;
