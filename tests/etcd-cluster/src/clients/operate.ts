import type { Random } from "@plinth/runtime";
import type { Call, Operation } from "../history/history.ts";
import type { Target } from "./life.ts";
import { perform } from "./perform.ts";
import type { Registers } from "./registers.ts";

/** What the clients of a run share. */
export interface Workload {
	readonly registers: Registers;
	readonly random: Random;
	/** What they have done, in the order of its end. */
	readonly operations: Operation[];
	/** Waits between two operations. */
	pause(): Promise<void>;
}

/** Writes to registers, most often what it thinks is there, until the signal aborts. */
export async function write(
	target: Target,
	workload: Workload,
	signal: AbortSignal,
): Promise<void> {
	const { registers, random, operations, pause } = workload;
	const known = new Map<string, string>();
	while (!signal.aborted) {
		const life = await target.life(signal);
		if (life === undefined) {
			return;
		}
		const register = registers.pick();
		if (random.next() < 0.6 || !known.has(register)) {
			const read = await perform(life, register, { kind: "read" }, false);
			operations.push(read);
			learn(known, read);
		}
		const operation = await perform(life, register, drawWrite(workload, known.get(register)), true);
		operations.push(operation);
		learn(known, operation);
		await pause();
	}
}

/** Reads registers until the signal aborts. */
export async function read(
	target: Target,
	{ registers, operations, pause }: Workload,
	strong: boolean,
	signal: AbortSignal,
): Promise<void> {
	while (!signal.aborted) {
		const life = await target.life(signal);
		if (life === undefined) {
			return;
		}
		operations.push(await perform(life, registers.pick(), { kind: "read" }, strong));
		await pause();
	}
}

function drawWrite({ registers, random }: Workload, version: string | undefined): Call {
	const drawn = random.next();
	if (version === undefined || drawn < 0.1) {
		return { kind: "put", text: registers.text() };
	}
	return drawn < 0.15
		? { kind: "delete", version }
		: { kind: "compare-and-swap", version, text: registers.text() };
}

function learn(known: Map<string, string>, { register, outcome }: Operation): void {
	if (outcome.kind === "value") {
		known.set(register, outcome.version);
	} else if (outcome.kind === "absent" || outcome.kind === "deleted") {
		known.delete(register);
	}
}
