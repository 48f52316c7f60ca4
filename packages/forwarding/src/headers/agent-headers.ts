/** Names the agents that a call has passed, the first one first. */
export const agentsHeader = "x-plinth-agents";

/** Carries the credential of an agent to servers. */
export const internalHeader = "x-plinth-internal";

/** Names the IP address of a client to servers that accept the credential of the agent. */
export const clientAddressHeader = "x-plinth-client";
