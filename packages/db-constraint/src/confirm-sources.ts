import { Code, ConnectError } from "@connectrpc/connect";
import type { ConfirmBlockadesRequest_Blockade } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { type Deployed, Lifecycle } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { ConstraintContext } from "./constraint-context.ts";
import { targetIsBeingChecked } from "./establish-references.ts";
import { shadowName, sourceOf, withSource } from "./shadow.ts";
import { updateShadow } from "./shadow-update.ts";

/**
 * Makes a tentative source confirmed, where the establishment is one of those that the source lives
 * by: not newer than its newest, and not from before it was dropped the last time. Nothing happens
 * otherwise; no source is ever made here.
 *
 * @throws ConnectError Unavailable while a deletion asks about the target: its shadow must not change.
 */
export async function confirmSource(
	context: ConstraintContext,
	from: Deployed,
	{ target, targetUid, establishment }: ConfirmBlockadesRequest_Blockade,
): Promise<void> {
	if (target === undefined) {
		throw new ConnectError("blockade.target is required", Code.InvalidArgument);
	}
	await updateShadow(context, shadowName(target), ({ shadow }) => {
		const source = sourceOf(shadow, from.uid);
		if (
			shadow.uid !== targetUid ||
			!source?.tentative ||
			establishment > source.establishment ||
			establishment < source.since
		) {
			return undefined;
		}
		if (shadow.lifecycle === Lifecycle.CHECKING) {
			throw new ConnectError(targetIsBeingChecked, Code.Unavailable);
		}
		return withSource(shadow, { ...source, tentative: false });
	});
}
