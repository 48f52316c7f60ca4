import { defaultWatchesPerSet } from "@plinth/resource-service";

/** The limits of the caches of an agent. Times are in milliseconds. */
export const cacheLimits = {
	/** A request that is larger is forwarded. */
	requestBytes: 64 * 1024,
	/** Tokens whose rights are followed at the same time. Calls with others are forwarded. */
	tokens: 1_000,
	/** Tokens of which it is not known yet whether they are valid. */
	openingTokens: 64,
	/** A token without watches is no longer followed when it was not used for this long. */
	tokenIdleMs: 60_000,
	/** How long a call waits until the rights of its token are known, before it is forwarded. */
	openTokenMs: 3_000,
	/** A refused token is not tried again for this long. */
	refusedTokenMs: 5_000,
	/** How long rights are valid after they were last known to be. No token has rights for longer without its stream. */
	rightsMs: 10_000,
	/** A stream of rights that is older is opened again: until then, the clocks of the agent and of a server differ little. */
	rightsStreamMs: 10 * 60_000,
	/** If the wall clock moves forward by so much more than the monotonic one, the machine was suspended. */
	suspendedMs: 1_000,
	/** How often it is checked which rights have ended. */
	sweepMs: 1_000,
	/** A stream of rights without a message for this long is opened again. */
	rightsSilenceMs: 6_500,
	/** Watches that caches serve at the same time, of all callers and of one subject. Others are forwarded. */
	watches: { all: 20_000, perSubject: 5_000 },
	/**
	 * The same for lists, until their responses were read: they take the most memory and time, and servers limit how much of
	 * theirs a subject uses.
	 */
	lists: { all: 256, perSubject: 64 },
	/** A set with more watches is forwarded: servers decide how many they allow. */
	watchesPerSet: defaultWatchesPerSet,
	/**
	 * How long a call waits for a cache that is behind its position, before it is forwarded. A watch waits for longer: once it
	 * was forwarded, it stays at a server.
	 */
	positionMs: { call: 1_000, watch: 5_000 },
	/** How long a watch waits for a cache that is being primed, before it is forwarded. */
	primingMs: 10_000,
	/** How often it is checked that a cache has all that the storage has. */
	checkEveryMs: 5_000,
	/** A check that takes longer has failed. */
	checkMs: 5_000,
	/** A cache of which it is not known for this long that it has all that the storage has serves no calls. */
	ageMs: 20_000,
	/** The pause after a type could not be cached, before that is tried again. */
	retryMs: 30_000,
	/** The same, if no server was ready. */
	retryUnavailableMs: 1_000,
	/** How long the start of the agent waits for servers to say that the types exist. */
	startMs: 5_000,
} as const;
