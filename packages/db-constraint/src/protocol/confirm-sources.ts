import { Code, ConnectError } from "@connectrpc/connect";
import type { ConfirmBlockadesRequest_Blockade } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { type Deployed, Lifecycle } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { shadowName, sourceOf, withSource } from "../shadow/shadow.ts";
import { updateShadow } from "../shadow/shadow-update.ts";
import { targetIsBeingChecked } from "./establish-references.ts";

/**
 * Confirms a tentative source if the establishment is valid for it: not newer than the source's latest
 * one, and not older than the last time that the source was dropped. Otherwise does nothing; never creates
 * a source.
 *
 * @throws ConnectError Unavailable while a deletion of the target is being checked: its shadow must not change.
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
