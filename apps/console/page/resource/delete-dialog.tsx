import { outcomeOf } from "@plinth/documents";
import { type Resource, ResourceService } from "@plinth/proto";
import {
	PlanDeletionResponse_Outcome as Outcome,
	ReferenceService,
} from "@plinth/proto/gen/plinth/schema/v1/reference_service_pb.js";
import { displayName } from "@plinth/resource";
import { useMutation } from "@tanstack/react-query";
import { useConnection } from "../app/connection.ts";
import { Dialog } from "../palette/dialog.tsx";
import { ErrorNotice } from "../parts/error-notice.tsx";
import { DeletionEffects } from "./deletion-plan.tsx";
import { useDetail } from "./use-detail.ts";

/** Says what the deletion of a resource would do, and deletes it. */
export function DeleteDialog({
	resource,
	onClose,
}: {
	readonly resource: Resource;
	readonly onClose: () => void;
}) {
	const connection = useConnection();
	const { id } = resource;
	const { data: plan, error } = useDetail("plan", resource, (of, named, signal) =>
		of.client(ReferenceService).planDeletion({ id: named }, { signal }),
	);
	const deletion = useMutation({
		// The uid keeps a resource that has replaced it meanwhile.
		mutationFn: () => connection.client(ResourceService).delete(id ? { id } : {}),
		onSuccess: onClose,
	});
	const isRefused = plan?.outcome === Outcome.REFUSED;
	return (
		<Dialog label="Delete" className="delete" onClose={onClose}>
			<div className="dialog-body">
				<h2>Delete {id && displayName(id)}?</h2>
				{error !== null && <ErrorNotice error={error} what="what the deletion would do" />}
				{plan === undefined && error === null && <p className="muted">Reading what it would do…</p>}
				{plan !== undefined && (
					<>
						<p className={isRefused ? "notice bad" : "notice"} role="status">
							The deletion {outcomeOf(plan, false)}.
						</p>
						<DeletionEffects plan={plan} />
					</>
				)}
				{deletion.error !== null && (
					<ErrorNotice error={deletion.error} what="the resource" verb="delete" />
				)}
				<div className="dialog-actions">
					<button type="button" onClick={onClose}>
						Cancel
					</button>
					<button
						type="button"
						className="danger"
						disabled={(plan === undefined && error === null) || isRefused || deletion.isPending}
						onClick={() => deletion.mutate()}
					>
						Delete
					</button>
				</div>
			</div>
		</Dialog>
	);
}
