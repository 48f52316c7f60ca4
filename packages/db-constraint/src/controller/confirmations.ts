import { create } from "@bufbuild/protobuf";
import {
	type ConfirmBlockadesRequest_Blockade,
	ConfirmBlockadesRequest_BlockadeSchema,
} from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import type { ConfirmBlockade } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { Batcher } from "../protocol/batcher.ts";
import { routeTo } from "../protocol/holder-query.ts";

/** Confirms committed references to other deployments, many in one call. */
export class Confirmations {
	readonly #context: Pick<ConstraintContext, "environment" | "limits">;
	/** By uid of the deployment. */
	readonly #batchers = new Map<string, Batcher<ConfirmBlockadesRequest_Blockade, true>>();

	constructor(context: Pick<ConstraintContext, "environment" | "limits">) {
		this.#context = context;
	}

	/** Resolves once the deployment has confirmed it. Rejects if it could not be reached, or has refused it. */
	async confirm(task: ConfirmBlockade): Promise<void> {
		const { target, targetUid, deployment, establishment } = task;
		await this.#batcher(deployment?.uid ?? "").submit(
			create(ConfirmBlockadesRequest_BlockadeSchema, {
				targetUid,
				establishment,
				...(target && { target }),
			}),
		);
	}

	#batcher(uid: string): Batcher<ConfirmBlockadesRequest_Blockade, true> {
		let batcher = this.#batchers.get(uid);
		if (batcher === undefined) {
			const { environment, limits } = this.#context;
			batcher = new Batcher(async (blockades) => {
				const route = routeTo(this.#context, uid);
				await environment
					.client(uid)
					.confirmBlockades(
						{ route, blockades: [...blockades] },
						{ timeoutMs: limits.callTimeoutMs },
					);
				return blockades.map(() => true as const);
			}, limits.batchSize);
			this.#batchers.set(uid, batcher);
		}
		return batcher;
	}
}
