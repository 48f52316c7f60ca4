/** Options for `runOrdered`. */
export interface RunOrderedOptions {
	/** The maximum number of tasks that run at a time. */
	readonly limit: number;
	/** The task of a position. */
	readonly run: (position: number) => Promise<void>;
	/** Whether no further task should start. */
	readonly isStopped: () => boolean;
}

/**
 * Runs a task for each position. A task starts when those that it depends on have ended. Of the tasks that may start,
 * those of lower positions start first. Of a cycle, the lowest position does not wait for the others.
 *
 * @param dependencies - for each position, the positions that it depends on.
 * @throws the error of a task, when those in progress have ended.
 */
export async function runOrdered(
	dependencies: readonly ReadonlySet<number>[],
	{ limit, run, isStopped }: RunOrderedOptions,
): Promise<void> {
	const waitsFor = dependencies.map((each) => new Set(each));
	const dependents = dependencies.map((): number[] => []);
	for (const [position, each] of dependencies.entries()) {
		for (const dependency of each) {
			dependents[dependency]?.push(position);
		}
	}
	const waiting = new Set(dependencies.keys());
	const ready: number[] = [];
	const release = (position: number) => {
		waiting.delete(position);
		ready.push(position);
	};
	for (const position of [...waiting]) {
		if (waitsFor[position]?.size === 0) {
			release(position);
		}
	}
	const end = (position: number) => {
		for (const dependent of dependents[position] ?? []) {
			waitsFor[dependent]?.delete(position);
			if (waiting.has(dependent) && waitsFor[dependent]?.size === 0) {
				release(dependent);
			}
		}
	};
	const running = new Set<Promise<void>>();
	let next = 0;
	for (;;) {
		if (next === ready.length && running.size === 0) {
			const [first] = waiting;
			if (first === undefined) {
				return;
			}
			release(lowestOfCycle(first, waitsFor));
		}
		while (next < ready.length && running.size < limit && !isStopped()) {
			const position = ready[next] ?? 0;
			next += 1;
			const task = run(position).then(() => {
				running.delete(task);
				end(position);
			});
			running.add(task);
		}
		if (running.size === 0) {
			return;
		}
		try {
			await Promise.race(running);
		} catch (error) {
			await Promise.allSettled(running);
			throw error;
		}
	}
}

/** The lowest position of a cycle that a waiting position waits for, or is in. */
function lowestOfCycle(start: number, waitsFor: readonly ReadonlySet<number>[]): number {
	const path: number[] = [];
	for (let at = start; ; ) {
		const known = path.indexOf(at);
		if (known >= 0) {
			return Math.min(...path.slice(known));
		}
		path.push(at);
		const [dependency] = waitsFor[at] ?? [];
		if (dependency === undefined) {
			return at;
		}
		at = dependency;
	}
}
