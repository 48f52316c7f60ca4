import { Code, ConnectError } from "@connectrpc/connect";
import type { KnownTypes } from "@plinth/documents";
import type { WantedResource } from "@plinth/documents/yaml";
import { nameKey } from "@plinth/resource";
import { type Applied, type ApplyOptions, applyResource } from "./apply-resource.ts";
import { dependenciesOf } from "./dependencies.ts";
import { runOrdered } from "./run-ordered.ts";

/** The result of one document. */
export type Outcome =
	| { readonly kind: "applied"; readonly applied: Applied }
	| { readonly kind: "failed"; readonly error: unknown };

/** Options for applying many documents. */
export interface ApplyAllOptions extends ApplyOptions {
	readonly types: KnownTypes;
	/** Called once for each document that was applied or has failed, in the order of the documents. */
	readonly onOutcome: (wanted: WantedResource, outcome: Outcome) => void;
	/** Called when a document has been attempted. `done` counts those that need no further attempt. */
	readonly onProgress: (done: number) => void;
	/** Whether further documents would fail for the same reason: then none is attempted. */
	readonly isFatal: (error: unknown) => boolean;
}

/** How many documents were applied. */
export interface Summary {
	readonly applied: number;
	/** Those in progress that an interrupt or a fatal error has cut off: they may have been applied. */
	readonly uncertain: number;
}

/** The maximum number of documents that are applied at a time. */
const concurrency = 16;

/** How long writes in progress may take after an interrupt. */
const writeGraceMs = 2_000;

/**
 * Refusals that may depend on what else is stored, and so on documents that are applied later. Other refusals are about
 * the document itself.
 */
const dependsOnOthers: ReadonlySet<Code> = new Set([
	...[Code.NotFound, Code.FailedPrecondition, Code.PermissionDenied, Code.Aborted],
]);

/**
 * Applies documents, several at a time, each after those that it depends on. What is refused is tried again once the
 * others are applied, as long as that has changed anything. After an interrupt or a fatal error, no document is started,
 * and those in progress end: reads at once, writes within two seconds.
 *
 */
export async function applyAll(
	all: readonly WantedResource[],
	options: ApplyAllOptions,
): Promise<Summary> {
	const run = new ApplyRun(all, options);
	await run.first();
	await run.again();
	return run.finish();
}

class ApplyRun {
	readonly #all: readonly WantedResource[];
	readonly #options: ApplyAllOptions;
	readonly #outcomes: (Outcome | undefined)[];
	/** The last document of each resource. */
	readonly #latest: ReadonlyMap<string, WantedResource>;
	/** Refused documents that may be tried again, with the number of writes when they were last tried. */
	readonly #refused = new Map<number, number>();
	readonly #writes = new AbortController();
	#written = 0;
	#attempted = 0;
	#uncertain = 0;
	#reported = 0;
	#isFatal = false;

	constructor(all: readonly WantedResource[], options: ApplyAllOptions) {
		this.#all = all;
		this.#options = options;
		this.#outcomes = all.map(() => undefined);
		this.#latest = new Map(all.map((wanted) => [nameKey(wanted.id), wanted]));
	}

	/** Applies all documents once. */
	async first(): Promise<void> {
		const { clock, signal, types } = this.#options;
		const onInterrupt = () => void clock.setTimer(writeGraceMs, () => this.#writes.abort());
		signal.addEventListener("abort", onInterrupt, { once: true });
		await runOrdered(dependenciesOf(this.#all, types), {
			limit: concurrency,
			run: (position) => this.#apply(position),
			isStopped: () => this.#isStopped(),
		});
	}

	/** Applies refused documents again, one at a time, until nothing changes any more. */
	async again(): Promise<void> {
		for (let before = -1; before < this.#written; ) {
			before = this.#written;
			for (const [position, written] of [...this.#refused].sort(([a], [b]) => a - b)) {
				if (written < this.#written && !this.#isStopped()) {
					await this.#apply(position);
				}
			}
		}
	}

	/** Reports what is left. */
	finish(): Summary {
		this.#refused.clear();
		for (; this.#reported < this.#all.length; this.#reported += 1) {
			this.#report(this.#reported);
		}
		const applied = this.#outcomes.filter((outcome) => outcome?.kind === "applied").length;
		return { applied, uncertain: this.#uncertain };
	}

	#isStopped(): boolean {
		return this.#isFatal || this.#options.signal.aborted;
	}

	async #apply(position: number): Promise<void> {
		const wanted = this.#all[position];
		if (wanted === undefined) {
			throw new Error(`no document at ${position}`);
		}
		const writtenBefore = this.#written;
		const outcome = await this.#attempt(wanted);
		if (outcome === undefined) {
			return;
		}
		this.#attempted += Number(this.#outcomes[position] === undefined);
		this.#outcomes[position] = outcome;
		this.#refused.delete(position);
		if (outcome.kind === "failed") {
			if (this.#mayTryAgain(wanted, outcome.error)) {
				this.#refused.set(position, writtenBefore);
			}
		} else if (outcome.applied.kind !== "unchanged" && !this.#options.dryRun) {
			this.#written += 1;
		}
		while (this.#outcomes[this.#reported] !== undefined && !this.#refused.has(this.#reported)) {
			this.#report(this.#reported);
			this.#reported += 1;
		}
		this.#options.onProgress(this.#done());
	}

	/** The outcome; `undefined` if an interrupt has ended the attempt. */
	async #attempt(wanted: WantedResource): Promise<Outcome | undefined> {
		const { signal } = this.#options;
		try {
			const writeSignal = this.#writes.signal;
			const applied = await applyResource(wanted, { ...this.#options, writeSignal });
			return { kind: "applied", applied };
		} catch (error) {
			if (signal.aborted) {
				// By now, only writes are in progress.
				this.#uncertain += Number(this.#writes.signal.aborted);
				return undefined;
			}
			// Of the documents in progress, one tells of the reason for all.
			const isFirst = !this.#isFatal;
			const isFatal = this.#options.isFatal(error);
			this.#isFatal ||= isFatal;
			this.#uncertain += Number(isFatal);
			return isFatal && !isFirst ? undefined : { kind: "failed", error };
		}
	}

	/** An earlier document of a resource must not replace what a later one has written. */
	#mayTryAgain(wanted: WantedResource, error: unknown): boolean {
		return (
			error instanceof ConnectError &&
			dependsOnOthers.has(error.code) &&
			!this.#options.isFatal(error) &&
			this.#latest.get(nameKey(wanted.id)) === wanted
		);
	}

	#done(): number {
		return this.#attempted - this.#refused.size;
	}

	#report(position: number): void {
		const wanted = this.#all[position];
		const outcome = this.#outcomes[position];
		if (wanted !== undefined && outcome !== undefined) {
			this.#options.onOutcome(wanted, outcome);
		}
	}
}
