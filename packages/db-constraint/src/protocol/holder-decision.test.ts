import { create } from "@bufbuild/protobuf";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { DescribeHoldersRequest_TargetSchema } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { ShadowSchema } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { silentLogger, systemRuntime } from "@plinth/runtime";
import { createMemoryBackend } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { Thing } from "../../testdata/types.ts";
import { localHolders } from "../plan/local-holders.ts";
import { localEnvironment } from "../registry/local-environment.ts";
import { keyOf } from "../shadow/resource-key.ts";
import { ShadowIndex } from "../shadow/shadow-index.ts";
import { putRecord } from "../shadow/shadow-records.ts";
import { currentDecision } from "./holder-decision.ts";

const count = 2_000;
const key = (name: string) => keyOf({ type: Thing.type, name, tenancy: {} }, "");
const target = key("t");

/** A deployment with very many shadows that name the target, and whose resources do not exist any more. */
async function start(links: "outgoing" | "metaOwners") {
	let turns = 0;
	const stop = new AbortController();
	const scheduler = {
		...systemRuntime.scheduler,
		schedule: (task: () => void) => systemRuntime.scheduler.schedule(task),
		turn: async () => {
			turns += 1;
			if (turns === 3) {
				stop.abort(new Error("the caller is gone"));
			}
		},
	};
	const backend = createMemoryBackend();
	for (let from = 0; from < count; from += 100) {
		await backend.commit(
			Array.from({ length: 100 }, (_, i) => {
				const name = `h-${from + i}`;
				const value = create(ShadowSchema, {
					...{ resource: key(name), uid: name },
					outgoing:
						links === "outgoing" ? [{ target, targetUid: "uid", rule: OnDelete.UNSET }] : [],
					metaOwners: links === "metaOwners" ? [{ owner: target, ownerUid: "uid" }] : [],
				});
				return putRecord(systemRuntime, `s-${name}`, undefined, { case: "shadow", value });
			}),
		);
	}
	const index = new ShadowIndex(backend, systemRuntime, silentLogger);
	const following = new AbortController();
	const running = index.run(following.signal);
	await index.reached(await backend.catchUp(following.signal));
	following.abort();
	await running;
	const runtime = { ...systemRuntime, scheduler };
	const environment = localEnvironment("", "alpha");
	return {
		context: { backend, index, environment, runtime },
		signal: stop.signal,
		turns: () => turns,
	};
}

describe("what is found of very many holders", () => {
	it.each(["outgoing", "metaOwners"] as const)(
		"is decided in turns, also if none counts, until the call ends: %s",
		async (links) => {
			const { context, signal, turns } = await start(links);
			const decided = currentDecision(context, target, "uid", { signal });
			await expect(decided).rejects.toThrow("the caller is gone");
			expect(turns()).toBe(3);
			const { rules, owned } = await currentDecision(context, target, "uid");
			expect({ rules, owned }).toEqual({ rules: [], owned: false });
			expect(turns()).toBe(3 + count / 200);
		},
	);

	it.each([
		["another incarnation", "outgoing", "other", (2 * count) / 50],
		["an owner", "metaOwners", "other", count / 50],
	] as const)(
		"is described in turns, also if none holds the target but %s, until the call ends",
		async (_which, links, uid, expected) => {
			const { context, signal, turns } = await start(links);
			const targets = [create(DescribeHoldersRequest_TargetSchema, { key: target, uid })];
			const described = localHolders(context, targets, undefined, 10, signal);
			await expect(described).rejects.toThrow("the caller is gone");
			expect(turns()).toBe(3);
			const never = new AbortController().signal;
			const [found] = await localHolders(context, targets, undefined, 10, never);
			expect(found?.holders).toEqual([]);
			expect(turns()).toBe(3 + expected);
		},
	);
});
