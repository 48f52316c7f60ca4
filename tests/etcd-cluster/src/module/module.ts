import { randomUUID } from "node:crypto";
import { writeSync } from "node:fs";
import process from "node:process";
import { create } from "@bufbuild/protobuf";
import { defineController, requeueAfter } from "@plinth/controller";
import { Condition_State as State } from "@plinth/proto";
import { idOf } from "@plinth/resource";
import { AlbumSchema, FestivalSchema } from "@plinth/resource-service/testing";
import { defineModule } from "@plinth/server/module";
import { Effect, type EffectData, Presence, Register, Task } from "./types.ts";

/** How often the singleton writes, in milliseconds. */
const tickMs = 200;
/** What a task says whose effect is to stall the process, and for how long. */
const stallMs = new Map([["stall", 1500]]);

let run = "";

const ticker = defineController({
	name: "ticker",
	manages: Task,
	placement: "singleton",
	concurrency: 4,
	initialize() {
		run = randomUUID();
	},
	async reconcile(context, { id }) {
		const ownRun = run;
		const task = context.cache.get(Task, id);
		if (task === undefined) {
			return undefined;
		}
		const effect: EffectData = {
			process: process.pid,
			run: ownRun,
			tasks: context.cache.list(Task).length,
			stallMs: stallMs.get(task.data.title) ?? 0,
		};
		const data = create(AlbumSchema, { title: JSON.stringify(effect) });
		try {
			await context.write(Effect, { id: idOf(Effect, id.name), data });
		} catch (error) {
			writeSync(2, `refused: ${error}\n`);
			throw error;
		}
		return requeueAfter(tickMs);
	},
});

const census = defineController({
	name: "census",
	manages: Task,
	placement: "each-server",
	async reconcile(context, { id }) {
		if (context.cache.get(Task, id) !== undefined) {
			const data = create(FestivalSchema, { title: id.name });
			const presence = idOf(Presence, `${id.name}-${process.pid}`);
			await context.writeIfChanged(Presence, { id: presence, data });
		}
	},
});

/** Says in the status of a task which process has its shard. */
const shares = defineController({
	name: "shares",
	manages: Task,
	placement: "sharded",
	async reconcile(context, { id }) {
		const task = context.cache.get(Task, id);
		if (task !== undefined) {
			const conditions = [{ type: "Shared", state: State.TRUE, message: String(process.pid) }];
			await context.writeStatusIfChanged(task.resource, { conditions });
		}
	},
});

/** What the servers of these tests run. */
export default defineModule({
	name: "cluster",
	types: [Register, Task, Presence, Effect],
	controllers: [ticker, census, shares],
});
