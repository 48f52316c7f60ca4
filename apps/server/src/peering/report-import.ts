import { create, equals } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import type { ReportImport } from "@plinth/peering";
import {
	type Condition,
	Condition_State,
	ConditionSchema,
	type ResourceService,
	StatusSchema,
} from "@plinth/proto";
import { fenceHeader } from "@plinth/resource-service";
import { encodeFence } from "@plinth/runtime";

/** The key of the status that peerings report, on Imports. */
const statusKey = "peering";

/**
 * Reports the state of imports in their status, if it has changed: `Synced`, whether they follow their peer, and `Complete`,
 * whether nothing was left out.
 */
export function reportImports(
	client: Pick<Client<typeof ResourceService>, "writeStatus">,
): ReportImport {
	return async ({ resource, state, message, record, hold }) => {
		const { leftOutTotal, leftOut } = record;
		const [first] = leftOut;
		const conditions: Condition[] = [
			create(ConditionSchema, {
				type: "Synced",
				state: state === "Streaming" ? Condition_State.TRUE : Condition_State.FALSE,
				reason: state,
				message,
			}),
			create(ConditionSchema, {
				type: "Complete",
				state: leftOutTotal === 0n ? Condition_State.TRUE : Condition_State.FALSE,
				reason: leftOutTotal === 0n ? "NothingLeftOut" : "LeftOut",
				message:
					first === undefined
						? ""
						: `${leftOutTotal} left out, such as ${[first.type, first.namespace, first.name].filter((part) => part !== "").join(" ")}: ${first.reason}; plinth peering list names more`,
			}),
		];
		const observedGeneration = resource.generation;
		const known = resource.status[statusKey];
		if (
			known?.observedGeneration === observedGeneration &&
			known.conditions.length === conditions.length &&
			known.conditions.every((each, at) => {
				const wanted = conditions[at];
				return wanted !== undefined && equals(ConditionSchema, each, wanted);
			})
		) {
			return;
		}
		try {
			await client.writeStatus(
				{
					...(resource.id && { id: resource.id }),
					key: statusKey,
					status: create(StatusSchema, { observedGeneration, conditions }),
				},
				{ headers: { [fenceHeader]: encodeFence(hold.fence) } },
			);
		} catch (failure) {
			// The Import was deleted meanwhile.
			if (!(failure instanceof ConnectError && failure.code === Code.NotFound)) {
				throw failure;
			}
		}
	};
}
