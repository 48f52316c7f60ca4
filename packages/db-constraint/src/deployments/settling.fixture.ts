import { createClient } from "@connectrpc/connect";
import { createInProcessTransport } from "@plinth/in-process";
import type { Resource } from "@plinth/proto";
import {
	SettleRequest_Action as Action,
	DeploymentService,
	type MissingReference,
	SettleResponse_Outcome as Outcome,
} from "@plinth/proto/gen/plinth/schema/v1/deployment_service_pb.js";
import type { Caller } from "@plinth/resource";
import type { StorageBackend } from "@plinth/storage";
import { Thing, Widget } from "../../testdata/types.ts";
import { Lab, type LabDeployment, type TransportDecorator } from "../lab/lab.fixture.ts";
import type { ServiceDescriptor } from "../schema/service-descriptor.ts";
import { reestablishOwnReferences } from "../succession/succession.ts";
import { createDeploymentService } from "./deployment-service.ts";

/** A deployment of things and one of widgets, which may reference them. */
export async function startBoth(
	options: {
		readonly decorate?: (backend: StorageBackend) => StorageBackend;
		readonly transport?: TransportDecorator;
	} = {},
) {
	const lab = new Lab(1, {}, options.transport);
	const alpha = await lab.add({ name: "alpha", service: "alpha", region: "r1", types: [Thing] });
	const beta = await lab.add(
		{ name: "beta", service: "beta", region: "r1", types: [Widget], foreignTypes: [Thing] },
		options.decorate,
	);
	return { lab, alpha, beta };
}

/** Restores a deployment to a state in which it has only some resources, and waits until the others have noticed. */
export async function restore(
	lab: Lab,
	deployment: LabDeployment,
	resources: readonly Resource[] = [],
	{ noticedMs = 60_000, backend }: { noticedMs?: number; backend?: StorageBackend } = {},
): Promise<LabDeployment> {
	const restored = await lab.succeed(deployment, resources, backend);
	const { context } = restored.current.constraints;
	await lab.run(reestablishOwnReferences(context, new AbortController().signal));
	Object.assign(restored.info, { established: true });
	lab.changed();
	await lab.pass(noticedMs);
	return restored;
}

const names: Readonly<Record<Outcome, string>> = {
	[Outcome.UNSPECIFIED]: "",
	[Outcome.SETTLED]: "SETTLED",
	[Outcome.GONE]: "GONE",
	[Outcome.REFUSED]: "REFUSED",
};

/** The DeploymentService of a deployment, as a caller has it. */
export function operatorsOf(
	lab: Lab,
	deployment: LabDeployment,
	options: {
		readonly caller?: Caller;
		readonly store?: StorageBackend;
		/** The schema of the server. Default: that of the deployment. */
		readonly descriptor?: ServiceDescriptor;
	} = {},
) {
	const { caller, store = deployment.store, descriptor } = options;
	const context = { ...deployment.current.constraints.context, ...(descriptor && { descriptor }) };
	const service = createDeploymentService(context, {
		outdatedSince: () => undefined,
		store,
		callerOf: async () => caller,
	});
	const client = createClient(
		DeploymentService,
		createInProcessTransport((router) => router.service(DeploymentService, service), lab.runtime),
	);
	return {
		client,
		/** The references without a target in a deployment. */
		async missing(deploymentUid: string): Promise<readonly MissingReference[]> {
			return (await lab.run(client.listMissing({ deploymentUid }))).references;
		},
		/** The names of the outcomes, with the problems. */
		async settle(
			deploymentUid: string,
			action: Action,
			references: readonly MissingReference[],
			dryRun = false,
		): Promise<readonly string[]> {
			const request = { deploymentUid, action, references: [...references], dryRun };
			const { results } = await lab.run(client.settle(request));
			return results.map(({ outcome, problem }) =>
				[names[outcome], problem].filter(Boolean).join(": "),
			);
		},
	};
}

export { Action };
