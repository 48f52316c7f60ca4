import { writeSync } from "node:fs";
import { defineType } from "@plinth/resource";
// The messages of another package's tests.
import {
	AlbumSchema,
	ArtistSchema,
	FestivalSchema,
	LabelSchema,
} from "@plinth/resource-service/testing";

/** What clients write and read. Its `genre` is a text that is written once. */
export const Register = defineType(ArtistSchema);

/** What the controllers manage. */
export const Task = defineType(LabelSchema);

/** What the controller of each server makes of a task: named after the task and the process. */
export const Presence = defineType(FestivalSchema);

/** What the singleton controller makes of a task, again and again. */
export interface EffectData {
	readonly process: number;
	/** The run of the controller. */
	readonly run: string;
	/** How many tasks it had in its cache. */
	readonly tasks: number;
	/** How long to hold up the whole process between the reconciler's write and the commit, once. */
	readonly stallMs: number;
}

let stalled = false;

/** Its `title` is an `EffectData` as JSON. */
export const Effect = defineType(AlbumSchema, {
	mutate({ data }) {
		const { stallMs } = effectData(data.title);
		if (stallMs > 0 && !stalled) {
			stalled = true;
			writeSync(2, "stalls\n");
			Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, stallMs);
			writeSync(2, "goes on\n");
		}
	},
});

/** The effect that a title stands for. */
export function effectData(title: string): EffectData {
	const data: Partial<EffectData> = JSON.parse(title);
	const { process = 0, run = "", tasks = 0, stallMs = 0 } = data;
	return { process, run, tasks, stallMs };
}
