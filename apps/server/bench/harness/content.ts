/** What all contenders have stored before anything is measured. The client in Go knows these names too. */
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { type Resource, ResourceService } from "@plinth/proto";
import {
	defaultTenancyUnit,
	idOf,
	Namespace,
	resourceOf,
	type TenancyLike,
	typeOf,
} from "@plinth/resource";
import { Artist, artist } from "../../testdata/music.ts";
import { token } from "./plinth-server.ts";

/** The resources in the default namespace: `r0`, `r1` and so on. */
export const listed = 1_000;

/** The resources of creates are in their own namespace, so that lists stay as long as they are. */
export const createdNamespace = "created";

/** The namespace whose events are fanned out, and its resources: `w0`, `w1` and so on, each with its writer. */
export const watchedNamespace = "watched";
export const writers = 16;

export const headers = { authorization: `Bearer ${token}` };

/** The tenancy of a namespace. */
export function tenancyIn(namespace: string): TenancyLike {
	return { partition: defaultTenancyUnit, namespace };
}

/** @throws Error if the server does not list afterwards what was written. */
export async function storeContent(address: string): Promise<void> {
	const client = createClient(ResourceService, createGrpcTransport({ baseUrl: address }));
	const write = (resource: Resource) => client.write({ resource }, { headers });
	for (const namespace of [createdNamespace, watchedNamespace]) {
		await write(resourceOf(Namespace, { id: idOf(Namespace, namespace) }));
	}
	for (let index = 0; index < listed; index++) {
		await write(artist(`r${index}`));
	}
	for (let index = 0; index < writers; index++) {
		const id = idOf(Artist, `w${index}`, { namespace: watchedNamespace });
		await write(resourceOf(Artist, { id }));
	}
	const { resources } = await client.list(
		{ type: typeOf(Artist.type), tenancy: tenancyIn("default") },
		{ headers },
	);
	if (resources.length !== listed) {
		throw new Error(`${address} lists ${resources.length} resources, not ${listed}`);
	}
}
