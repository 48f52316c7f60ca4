import { idAt, nameOfKey } from "@plinth/documents";
import type { PlanDeletionResponse_Effect } from "@plinth/proto/gen/plinth/schema/v1/reference_service_pb.js";
import type { ResourceKey } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { planDeletion } from "../api/references.ts";
import type { ServerSession } from "../api/server-session.ts";
import { effectRows } from "../output/deletion-plan.ts";
import { plainCell, renderTable } from "../output/table.ts";

/** The deletions of how many resources are foretold: each is a call, which may visit other deployments. */
const planned = 100;

/** Prints what else would happen if resources were deleted, level by level. */
export async function showCascades(
	session: ServerSession,
	resources: readonly ResourceKey[],
): Promise<void> {
	const { io } = session;
	const byName = new Map(resources.map((key) => [nameOfKey(key), key]));
	if (byName.size === 0) {
		return;
	}
	const types = await session.types();
	const effects = new Map<string, PlanDeletionResponse_Effect>();
	let hidden = 0;
	let isPartial = byName.size > planned;
	for (const key of [...byName.values()].slice(0, planned)) {
		const known = types.all.find(({ type }) => type.group === key.group && type.kind === key.kind);
		if (known === undefined) {
			isPartial = true;
			continue;
		}
		const plan = await planDeletion(session, idAt(known, key.name, key));
		hidden += plan.hidden;
		isPartial ||= plan.isPartial;
		for (const effect of plan.effects) {
			if (effect.level > 0 && !byName.has(nameOfKey(effect.resource))) {
				effects.set(effect.uid, effect);
			}
		}
	}
	const inOrder = [...effects.values()].toSorted((a, b) => a.level - b.level);
	if (inOrder.length > 0) {
		const columns = ["LEVEL", "RESOURCE", "EFFECT", "WAITS FOR"].map((heading, at) => ({
			heading,
			cut: at > 1,
		}));
		const rows = effectRows(inOrder).map((row, at) => [
			plainCell(String(inOrder[at]?.level ?? "")),
			...row,
		]);
		io.out(`with what is deleted:\n${renderTable(columns, rows, io)}`);
	}
	if (hidden > 0) {
		io.out(`${hidden} more, which you may not read\n`);
	}
	if (isPartial) {
		io.out("there is more with what is deleted than was examined\n");
	}
}
