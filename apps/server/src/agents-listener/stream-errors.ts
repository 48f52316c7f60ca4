import type { RateLimit } from "@plinth/http2";

/**
 * The budget for stream errors on connections of agents. Each call that a client of an agent cancels, or that exceeds its deadline,
 * resets a stream of the connection that all of its clients share. The agent limits each of its clients itself, and requests that
 * carry no credential are refused before anything is done for them.
 */
export const streamErrorsOfAgents: RateLimit = { burst: 100_000, perSecond: 10_000 };
