import { create } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import { NamespaceSchema, type ResourceService } from "@plinth/proto";
import { idOf, Namespace, resourceOf } from "@plinth/resource";
import { Artist, artist } from "../testdata/music.ts";

const tenancy = { partition: "default", namespace: "tenant" };

/** The namespace of a tenant. */
export const tenantId = idOf(Namespace, "tenant");

/** The namespace, ready to be written. */
export const tenant = resourceOf(Namespace, { id: tenantId, data: create(NamespaceSchema) });

/** An artist in it. */
export function artistOfTenant(name: string) {
	return { ...artist(name), id: idOf(Artist, name, tenancy) };
}

/** The names of the artists in it, as returned by a server that registers the type. */
export async function artistsOfTenant(
	client: Client<typeof ResourceService>,
): Promise<readonly (string | undefined)[]> {
	const { resources } = await client.list({ type: Artist.type, tenancy });
	return resources.map(({ id }) => id?.name);
}

/** The message and reason in the status of the namespace about remaining resources; empty if there is none. */
export async function leftInTenant(client: Client<typeof ResourceService>): Promise<string> {
	const { resource } = await client.read({ id: tenantId });
	const [condition] = resource?.status["namespace-deletion"]?.conditions ?? [];
	return condition === undefined ? "" : `${condition.reason}: ${condition.message}`;
}

/** Whether the namespace exists. */
export async function hasTenant(client: Client<typeof ResourceService>): Promise<boolean> {
	const { resources } = await client.list({ type: Namespace.type, tenancy: {} });
	return resources.some(({ id }) => id?.name === tenantId.name);
}
