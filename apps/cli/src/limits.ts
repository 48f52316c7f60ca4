/** The most events that a server returns. */
export const maxEvents = 10_000;

/** The most versions of a resource that are printed at once. */
export const maxVersions = 1_000;
