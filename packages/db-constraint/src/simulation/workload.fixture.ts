/** How the simulated users behave, as probabilities from 0 to 1. Each seed draws one workload. */
export interface Workload {
	/** Whether all users work on one resource, so that writes and deletions of it race. */
	readonly isCrowded: boolean;
	/** How often users work on the first deployment, and how often on the last; otherwise on any. */
	readonly home: number;
	readonly guest: number;
	/** The number of steps per user. */
	readonly steps: number;
	/** The longest pauses between two steps, in milliseconds: one is drawn, then shortened at random. */
	readonly pausesMs: readonly [number, ...number[]];
	/** That a resource has a BLOCK reference. */
	readonly blocking: number;
	/** That a resource has a CASCADE reference. */
	readonly cascading: number;
	/** That a reference targets the crowded resource. */
	readonly following: number;
	/** That a resource is in the namespace that may be deleted. */
	readonly elsewhere: number;
	/** That a step deletes the namespace. */
	readonly evicting: number;
	/** That a new resource has a finalizer. */
	readonly holding: number;
	/** Candidates for the probability that a message is delivered twice. */
	readonly repeated: readonly [number, ...number[]];
	/** Candidates for the probability that a step is slow. */
	readonly slow: readonly [number, ...number[]];
	/** Candidates for the probability that a commit of the last deployment takes seconds to apply. */
	readonly held: readonly [number, ...number[]];
	/** Candidates for the probability that the outcome of a commit is unknown. */
	readonly unknown: readonly [number, ...number[]];
}

const wide: Workload = {
	isCrowded: false,
	home: 0,
	guest: 0,
	steps: 10,
	pausesMs: [0, 0, 100, 2_000, 2_000, 40_000],
	blocking: 0.25,
	cascading: 0.4,
	following: 0,
	elsewhere: 0.25,
	evicting: 0.04,
	holding: 0.15,
	repeated: [0, 0.05, 0.2],
	slow: [0, 0.005, 0.02],
	held: [0, 0.02],
	unknown: [0, 0.02, 0.06],
};

/** The workloads, by name. */
export const workloads = {
	wide,
	/** Users reference and delete the same resource concurrently. */
	crowd: {
		...wide,
		isCrowded: true,
		home: 0.3,
		guest: 0.6,
		steps: 24,
		pausesMs: [0, 0, 0, 0, 10, 300, 3_000],
		blocking: 0.25,
		cascading: 0.7,
		following: 0.85,
		elsewhere: 0.1,
		evicting: 0.01,
		slow: [0.02, 0.05, 0.1],
		held: [0.1, 0.3, 0.6],
		unknown: [0, 0.03, 0.1],
	},
	/** Users delete and re-create the same resource, while others release and reference it again. */
	recreation: {
		...wide,
		isCrowded: true,
		home: 0.35,
		guest: 0.5,
		steps: 14,
		pausesMs: [0, 10, 300, 3_000, 10_000],
		blocking: 0,
		following: 0.9,
		elsewhere: 0,
		evicting: 0,
		holding: 0.02,
		repeated: [0.2, 0.5],
		slow: [0, 0.01, 0.03],
		held: [0, 0.1, 0.3],
	},
	/** Users delete namespaces whose resources block each other. */
	eviction: { ...wide, home: 0.7, blocking: 0.7, elsewhere: 0.9, evicting: 0.1 },
} satisfies Record<string, Workload>;

/** The workloads to draw from; the more frequent ones are listed several times. */
export const workloadNames = [
	"wide",
	"wide",
	"crowd",
	"crowd",
	"crowd",
	"crowd",
	"recreation",
	"recreation",
	"eviction",
	"eviction",
] as const;
