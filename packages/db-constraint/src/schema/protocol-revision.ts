/**
 * The revision of the protocol of references. Raise it with each change that is wrong beside code without it in the same
 * deployment, such as a record that commits must assert. It is part of the fingerprint of the schema, so that servers of
 * other revisions commit nothing, and establishments fail once a later revision is active.
 *
 * - 1: commits assert that no other deployment has taken over from those that they have established references with.
 * - 2: they assert that this deployment has not given up the uid under which they have.
 * - 3: they assert that no other deployment has taken over from those that have said that an owner is valid.
 * - 4: each field has a record of its own, also where several name one target by one rule.
 */
export const protocolRevision = 4;
