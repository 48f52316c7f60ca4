/** What users are after, as chances from 0 to 1. Each seed has one kind of users. */
export interface Habits {
	/** Whether all crowd around one resource, so that writes and deletions of it race. */
	readonly isCrowded: boolean;
	/** How often users are at the first deployment, and how often at the last; else they are anywhere. */
	readonly home: number;
	readonly guest: number;
	/** How many things each does. */
	readonly things: number;
	/** The longest pauses between two things, in milliseconds: one of them, shortened by chance. */
	readonly pausesMs: readonly [number, ...number[]];
	/** That a resource blocks another one. */
	readonly blocking: number;
	/** That a resource goes with another one. */
	readonly cascading: number;
	/** That a resource references what is crowded around. */
	readonly following: number;
	/** That something is in the namespace that may be deleted. */
	readonly elsewhere: number;
	/** That the namespace is deleted, of each thing that is done. */
	readonly evicting: number;
	/** That a new resource has a finalizer. */
	readonly holding: number;
	/** That some messages arrive twice in the seed at all. */
	readonly repeated: readonly [number, ...number[]];
	/** That a step is slow. */
	readonly slow: readonly [number, ...number[]];
	/** That a commit of the last deployment is under way for seconds before it lands. */
	readonly held: readonly [number, ...number[]];
	/** That nobody knows whether a commit has landed. */
	readonly unknown: readonly [number, ...number[]];
}

const wide: Habits = {
	isCrowded: false,
	home: 0,
	guest: 0,
	things: 10,
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

/** Kinds of users. */
export const habits = {
	wide,
	/** Reference and delete the same thing at the same time. */
	crowd: {
		...wide,
		isCrowded: true,
		home: 0.3,
		guest: 0.6,
		things: 24,
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
	/** Delete the same thing and make it again, while others let go of it and reference it again. */
	rebirth: {
		...wide,
		isCrowded: true,
		home: 0.35,
		guest: 0.5,
		things: 14,
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
	/** Delete namespaces in which all block each other. */
	eviction: { ...wide, home: 0.7, blocking: 0.7, elsewhere: 0.9, evicting: 0.1 },
} satisfies Record<string, Habits>;

/** Which kinds there are, the more frequent ones several times. */
export const habitNames = [
	"wide",
	"wide",
	"crowd",
	"crowd",
	"crowd",
	"crowd",
	"rebirth",
	"rebirth",
	"eviction",
	"eviction",
] as const;
