import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { StorageBackend } from "@plinth/storage";
import { allArtists, textOf } from "@plinth/storage/testing";
import { expect } from "vitest";

/** Whether a step of a writer deletes its pair, instead of writing the step's number to it. */
export function isDeletion(step: number): boolean {
	return step % 7 === 6;
}

/** How far the writers of a killed process got, by what they reported. */
export interface WriterProgress {
	/** Per writer, the versions of its acknowledged steps, and the step before the first of them. */
	readonly acknowledged: Map<number, Map<number, number>>;
	/** Per writer, the step that was found after the last kill, acknowledged or not. */
	readonly survived: Map<number, number>;
	/** The newest acknowledged version. */
	newest: number;
}

/** The progress before the first step. */
export function newProgress(): WriterProgress {
	return { acknowledged: new Map(), survived: new Map(), newest: 0 };
}

/** Starts a process that writes, kills it after a while, and records the steps that it reported. */
export async function writeUntilKilled(
	path: string,
	progress: WriterProgress,
	options: { readonly writers: number; readonly killAfterMs: number },
): Promise<void> {
	const script = new URL("./crash-writer.fixture.ts", import.meta.url).pathname;
	const child: ChildProcess = spawn(process.execPath, [script, path, String(options.writers)], {
		stdio: ["ignore", "pipe", "inherit"],
	});
	let report = "";
	child.stdout?.setEncoding("utf8");
	child.stdout?.on("data", (text: string) => {
		if (report === "") {
			setTimeout(() => child.kill("SIGKILL"), options.killAfterMs);
		}
		report += text;
	});
	await once(child, "close");
	// A line without a line break was cut off by the kill.
	for (const line of report.split("\n").slice(0, -1)) {
		const [writer = 0, step = 0, version = 0] = line.split(" ").map(Number);
		let steps = progress.acknowledged.get(writer);
		if (steps === undefined) {
			steps = new Map();
			progress.acknowledged.set(writer, steps);
		}
		expect(steps.has(step), "a step is run once").toBe(false);
		expect(version, "versions never go back").toBeGreaterThan(steps.get(step - 1) ?? 0);
		steps.set(step, version);
		progress.newest = Math.max(progress.newest, version);
	}
}

/**
 * Checks that the stored state is a prefix of the acknowledged steps: for each writer a complete step, and for
 * all writers together no step later than the version of the storage and none missing before it.
 *
 * @returns The storage's version.
 */
export async function expectPrefix(
	backend: StorageBackend,
	progress: WriterProgress,
): Promise<number> {
	const { resources, version } = await backend.list(allArtists);
	const texts = new Map(resources.map((each) => [each.id?.name, textOf(each)]));
	const versions = new Map(resources.map((each) => [each.id?.name, each.version]));
	for (const [writer, steps] of progress.acknowledged) {
		const step = Number(texts.get(`step-${writer}`) ?? "0");
		const expected = isDeletion(step) || step === 0 ? undefined : String(step);
		expect(texts.get(`left-${writer}`)).toBe(expected);
		expect(texts.get(`right-${writer}`)).toBe(expected);
		if (expected !== undefined) {
			expect(versions.get(`left-${writer}`)).toBe(versions.get(`step-${writer}`));
			expect(versions.get(`right-${writer}`)).toBe(versions.get(`step-${writer}`));
		}
		const acknowledged = steps.get(step);
		if (acknowledged !== undefined) {
			expect(versions.get(`step-${writer}`)).toBe(String(acknowledged));
		}
		for (const [other, at] of steps) {
			expect(other <= step, `step ${other} of writer ${writer}, at version ${at}`).toBe(
				at <= Number(version),
			);
		}
		// An unacknowledged step can only be the one after the last that was acknowledged or found.
		const known = Math.max(...steps.keys(), progress.survived.get(writer) ?? 0);
		expect(step).toBeLessThanOrEqual(known + 1);
	}
	await expectWatchAgrees(backend);
	return Number(version);
}

/** Records the steps that a killed process has left; the next one continues from there. */
export async function noteSurvivors(
	backend: StorageBackend,
	progress: WriterProgress,
): Promise<void> {
	const { resources } = await backend.list(allArtists);
	for (const resource of resources) {
		const [kind, writer] = (resource.id?.name ?? "").split("-");
		if (kind === "step") {
			progress.survived.set(Number(writer), Number(textOf(resource)));
		}
	}
}

/** Checks that the snapshot of a watch equals the list. */
async function expectWatchAgrees(backend: StorageBackend): Promise<void> {
	const listed = await backend.list(allArtists);
	const seen = [];
	for await (const event of backend.watchList(allArtists, {
		signal: new AbortController().signal,
	})) {
		if (event.kind === "end-of-snapshot") {
			expect(event.version).toBe(listed.version);
			break;
		}
		seen.push(event.kind === "upsert" && event.resource);
	}
	expect(seen).toEqual(listed.resources);
}
