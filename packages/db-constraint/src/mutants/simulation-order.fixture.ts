import type { FaultName } from "../fault-points.ts";
import { isFaultName } from "./mutants.fixture.ts";

/** What a process is asked to simulate: seeds with a planted fault, until one breaks a promise. */
export interface Order {
	readonly fault: FaultName;
	readonly from: number;
	readonly runs: number;
	/** Further arguments of the simulation. */
	readonly args: readonly string[];
}

/** What it reports: for each seed, whether it broke a promise, and the end if none did. */
export type Report =
	| {
			readonly kind: "found";
			readonly seed: number;
			readonly promise: number;
			readonly message: string;
	  }
	| { readonly kind: "kept"; readonly seed: number }
	| { readonly kind: "done" };

export function isOrder(message: unknown): message is Order {
	return isObject(message) && typeof message.fault === "string" && isFaultName(message.fault);
}

export function isReport(message: unknown): message is Report {
	return isObject(message) && ["found", "kept", "done"].includes(`${message.kind}`);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
	return typeof value === "object" && value !== null;
}
