/** A value of one register, as a client received it. A register is a resource that clients overwrite with unique texts. */
export interface Value {
	readonly version: number;
	readonly text: string;
}

/** A compare-and-swap. */
export interface Write {
	readonly key: string;
	readonly text: string;
	/** 0 for a creation. */
	readonly expected: number;
	readonly startMs: number;
	readonly endMs: number;
	/** The version that it was acknowledged with; absent if it failed or the outcome is unknown. */
	readonly version?: number;
	/** Whether it was said to have failed: then it must not be there. */
	readonly failed: boolean;
}

/** A read. */
export interface Read extends Value {
	readonly key: string;
	readonly server: number;
	readonly strong: boolean;
	readonly startMs: number;
	readonly endMs: number;
}

/** A step of a watch on a server, in the order in which it came. */
export interface SentEvent extends Value {
	readonly key: string;
	/** The version that the event says it has replaced; 0 for none. */
	readonly replaced: number;
}

/** Everything that clients saw of some servers. */
export interface History {
	readonly writes: readonly Write[];
	readonly reads: readonly Read[];
	/** Per server, all events of a watch. */
	readonly watches: readonly (readonly SentEvent[])[];
}

/**
 * What contradicts the promises: strong operations are linearizable per register, eventual reads
 * monotonic per server, watches whole and in order, acknowledged writes there and failed ones not.
 *
 * The chain of a register (which value replaced which) orders its writes, so that linearizability
 * comes down to this: nothing acknowledged or read strongly is behind what was acknowledged or read
 * before it began, and nothing is read that is not in the chain.
 */
export function problemsOf(history: History): readonly string[] {
	const problems: string[] = [];
	const [longest = []] = [...history.watches].sort((a, b) => b.length - a.length);
	const chain = chainOf(longest);
	for (const [server, watch] of history.watches.entries()) {
		problems.push(
			...watchProblems(watch, longest).map((why) => `watch of server ${server}: ${why}`),
		);
	}
	problems.push(...writeProblems(history.writes, chain));
	problems.push(...readProblems(history, chain));
	return problems;
}

type Chain = ReadonlyMap<string, string>;

function place(key: string, version: number): string {
	return `${key}@${version}`;
}

function chainOf(watch: readonly SentEvent[]): Chain {
	return new Map(watch.map(({ key, version, text }) => [place(key, version), text]));
}

function watchProblems(
	watch: readonly SentEvent[],
	longest: readonly SentEvent[],
): readonly string[] {
	const problems: string[] = [];
	const current = new Map<string, number>();
	let last = 0;
	for (const [index, { key, version, replaced, text }] of watch.entries()) {
		if (version < last) {
			problems.push(`${place(key, version)} came after revision ${last}`);
		}
		if (replaced !== (current.get(key) ?? 0)) {
			problems.push(`${place(key, version)} replaced ${replaced}, after ${current.get(key)}`);
		}
		const other = longest[index];
		if (other?.key !== key || other.version !== version || other.text !== text) {
			problems.push(`${place(key, version)} is not what another server has sent`);
		}
		last = version;
		current.set(key, version);
	}
	if (watch.length < longest.length) {
		problems.push(`${longest.length - watch.length} events are missing at its end`);
	}
	return problems;
}

function writeProblems(writes: readonly Write[], chain: Chain): readonly string[] {
	const problems: string[] = [];
	const texts = new Map<string, number>();
	for (const text of chain.values()) {
		texts.set(text, (texts.get(text) ?? 0) + 1);
	}
	for (const { key, text, version, failed } of writes) {
		if (version !== undefined && chain.get(place(key, version)) !== text) {
			problems.push(`acknowledged write ${text} at ${place(key, version)} is lost`);
		}
		if (failed && texts.has(text)) {
			problems.push(`failed write ${text} is there`);
		}
		if ((texts.get(text) ?? 0) > 1) {
			problems.push(`write ${text} is there ${texts.get(text)} times`);
		}
	}
	return problems;
}

function readProblems({ reads, writes }: History, chain: Chain): readonly string[] {
	const problems: string[] = [];
	for (const { key, version, text } of reads) {
		if (version !== 0 && chain.get(place(key, version)) !== text) {
			problems.push(`read of ${text} at ${place(key, version)}: it was never there`);
		}
	}
	for (const key of new Set(reads.map((read) => read.key))) {
		const acknowledged = writes.flatMap((write) =>
			write.key === key && write.version !== undefined
				? [{ ...write, version: write.version }]
				: [],
		);
		const strong = reads.filter((read) => read.key === key && read.strong);
		problems.push(
			...staleness(
				[...acknowledged, ...strong],
				[...acknowledged, ...reads.filter((read) => read.key === key)],
				(version) => place(key, version),
			),
		);
		for (const server of new Set(reads.map((read) => read.server))) {
			const own = reads.filter((read) => read.key === key && read.server === server);
			problems.push(
				...staleness(own, own, (version) => `server ${server}: ${place(key, version)}`),
			);
		}
	}
	return problems;
}

interface Observed {
	readonly version: number;
	readonly startMs: number;
	readonly endMs: number;
}

/** What is older than something that was known before it began. */
function staleness(
	observed: readonly Observed[],
	known: readonly Observed[],
	name: (version: number) => string,
): string[] {
	const problems: string[] = [];
	const byEnd = [...known].sort((a, b) => a.endMs - b.endMs);
	let newest = 0;
	let next = 0;
	for (const each of [...observed].sort((a, b) => a.startMs - b.startMs)) {
		for (let ended = byEnd[next]; ended !== undefined && ended.endMs < each.startMs; ) {
			newest = Math.max(newest, ended.version);
			next += 1;
			ended = byEnd[next];
		}
		if (each.version < newest) {
			problems.push(`${name(each.version)} was seen after ${newest}`);
		}
	}
	return problems;
}
