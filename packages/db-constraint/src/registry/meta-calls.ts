import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import type { Resource, ResourceService } from "@plinth/proto";
import { encodeData, idOf, type ResourceType, resourceOf } from "@plinth/resource";
import { consistencyHeader } from "@plinth/resource-service";

/** Headers of calls whose answers must not be older than the call. */
export const strongly = { [consistencyHeader]: "consistent" } as const;

/** A resource as it is now, or `undefined` where there is none. */
export async function readStrongly(
	client: Client<typeof ResourceService>,
	type: ResourceType,
	name: string,
	timeoutMs: number,
): Promise<Resource | undefined> {
	try {
		const { resource } = await client.read(
			{ id: idOf(type, name) },
			{ headers: strongly, timeoutMs },
		);
		return resource;
	} catch (failure) {
		if (ConnectError.from(failure).code === Code.NotFound) {
			return undefined;
		}
		throw failure;
	}
}

/**
 * Creates a resource; `undefined` where one of that name is there. A request that arrives late, or a second
 * time, must not replace what operators and other servers have written since.
 */
export async function createResource<Desc extends DescMessage>(
	client: Client<typeof ResourceService>,
	type: ResourceType<Desc>,
	name: string,
	data: MessageShape<Desc>,
	timeoutMs: number,
): Promise<Resource | undefined> {
	const resource = resourceOf(type, { id: idOf(type, name), data });
	try {
		return await write(client, { resource, createOnly: true }, timeoutMs);
	} catch (failure) {
		if (ConnectError.from(failure).code === Code.AlreadyExists) {
			return undefined;
		}
		throw failure;
	}
}

/** Replaces the data of a resource, by compare-and-swap: Aborted where it has changed meanwhile. */
export function replaceData<Desc extends DescMessage>(
	client: Client<typeof ResourceService>,
	type: ResourceType<Desc>,
	stored: Resource,
	data: MessageShape<Desc>,
	timeoutMs: number,
): Promise<Resource> {
	const resource = { ...stored, data: encodeData(type.schema, data) };
	return write(client, { resource }, timeoutMs);
}

async function write(
	client: Client<typeof ResourceService>,
	request: { readonly resource: Resource; readonly createOnly?: boolean },
	timeoutMs: number,
): Promise<Resource> {
	const answer = await client.write(request, { timeoutMs });
	if (answer.resource === undefined) {
		throw unavailable("the meta deployment gave no answer");
	}
	return answer.resource;
}

/** Something can't be found out or done now. */
export function unavailable(message: string): ConnectError {
	return new ConnectError(message, Code.Unavailable);
}
