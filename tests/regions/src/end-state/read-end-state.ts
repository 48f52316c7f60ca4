import type { Regions } from "@plinth/example-regions/regions";
import { callUntilDone } from "../clients/api.ts";
import { type JsonObject, objectOf, objectsOf, textOf } from "../clients/json.ts";
import { placeOfResource, seenOf, typeOf } from "../clients/json-resources.ts";
import { kindOf, kinds } from "../clients/places.ts";
import { type Kind, keyOf } from "../history/history.ts";
import type { EndState, ObservedShadow, StoredResource } from "./end-state.ts";

/** How long a restarted server may take to respond, in milliseconds. */
const limitMs = 120_000;

/** Reads all resources and all shadows, through the API. */
export async function readEndState(regions: Regions): Promise<EndState> {
	const resources: StoredResource[] = [];
	const shadows: ObservedShadow[] = [];
	const servers = [...regions.servers.values()];
	// The servers of a deployment have one storage.
	for (const { address, plan } of servers.filter(({ plan }) => plan.server === undefined)) {
		const { name: deployment, region, service } = plan;
		const kept = (["Project", "AccessKey", "Rack", "Device"] as const).filter(
			(kind) => kinds[kind].group === service,
		);
		for (const kind of kept) {
			for (const resource of await list(address, typeOf({ kind }), allTenancies)) {
				const place = placeOfResource(resource, region);
				resources.push({ key: keyOf(place), deployment, seen: seenOf(place, resource) });
			}
		}
		const type = { group: "schema", groupVersion: "v1", kind: "ResourceShadow" };
		for (const resource of kept.length > 0 ? await list(address, type, {}) : []) {
			const { shadow } = objectOf(resource.data);
			const seen = shadow === undefined ? undefined : observedShadow(objectOf(shadow));
			shadows.push(...(seen === undefined ? [] : [seen]));
		}
	}
	return { resources, shadows };
}

const allTenancies = { partition: "*", namespace: "*" };

async function list(
	address: string,
	type: JsonObject,
	tenancy: JsonObject,
): Promise<readonly JsonObject[]> {
	const { resources } = await callUntilDone(address, "List", { type, tenancy }, limitMs);
	return objectsOf(resources);
}

/** `undefined` for kinds that clients do not write, such as namespaces. */
function observedShadow(shadow: JsonObject): ObservedShadow | undefined {
	const resource = objectOf(shadow.resource);
	if (!(textOf(resource.kind) in kinds)) {
		return undefined;
	}
	return {
		key: keyIn(resource),
		uid: textOf(shadow.uid),
		lifecycle: textOf(shadow.lifecycle),
		outgoing: objectsOf(shadow.outgoing).map(({ target, targetUid }) => ({
			target: keyIn(objectOf(target)),
			targetUid: textOf(targetUid),
		})),
		sources: objectsOf(shadow.sources).map(({ deployment, tentative }) => ({
			deployment: deploymentIn(deployment),
			tentative: tentative === true,
		})),
		ownees: objectsOf(shadow.ownees).map(({ deployment }) => deploymentIn(deployment)),
		owners: objectsOf(shadow.metaOwners).map(({ ownerUid }) => textOf(ownerUid)),
		tasks: objectsOf(shadow.tasks).map((task) => Object.keys(task).join(", ")),
	};
}

function keyIn({ kind, name, region }: JsonObject): string {
	const known: Kind = kindOf(textOf(kind));
	return keyOf({ kind: known, name: textOf(name), region: textOf(region) });
}

function deploymentIn(deployed: unknown): string {
	const { service, region } = objectOf(deployed);
	return `${textOf(service)}-${textOf(region)}`;
}
