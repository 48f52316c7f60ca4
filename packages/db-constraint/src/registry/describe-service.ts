import { create, equals } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
	RegionSchema,
	type Service as ServiceData,
	ServiceSchema,
	ServiceVersionSchema,
} from "@plinth/proto/gen/plinth/meta/v1/meta_pb.js";
import { decodeShared } from "@plinth/resource";
import type { ServiceDescriptor } from "../schema/service-descriptor.ts";
import type { DeploymentConfiguration } from "./deployment-configuration.ts";
import { createResource, readStrongly, replaceData } from "./meta-calls.ts";
import type { MetaSource } from "./meta-source.ts";
import { Region, Service } from "./meta-types.ts";

/** Adds the description of the service and the region by this code to those of the meta deployment. */
export async function describeService(
	{ client }: MetaSource,
	{ service, region, domain = "" }: DeploymentConfiguration,
	descriptor: ServiceDescriptor,
	callTimeoutMs: number,
): Promise<void> {
	if ((await readStrongly(client, Region, region, callTimeoutMs)) === undefined) {
		await createResource(client, Region, region, create(RegionSchema), callTimeoutMs);
	}
	for (;;) {
		const stored = await readStrongly(client, Service, service, callTimeoutMs);
		const before = stored && decodeShared(Service, stored).data;
		const next = mergedDescription(before ?? create(ServiceSchema), domain, descriptor);
		if (before !== undefined && equals(ServiceSchema, before, next)) {
			return;
		}
		try {
			const written = await (stored === undefined
				? createResource(client, Service, service, next, callTimeoutMs)
				: replaceData(client, Service, stored, next, callTimeoutMs));
			if (written !== undefined) {
				return;
			}
		} catch (failure) {
			if (ConnectError.from(failure).code !== Code.Aborted) {
				throw failure;
			}
		}
	}
}

function mergedDescription(
	before: ServiceData,
	domain: string,
	descriptor: ServiceDescriptor,
): ServiceData {
	const versions = new Map(before.versions.map((each) => [each.version, each]));
	// A deployment serves all its versions, whichever of them it publishes.
	const imports = descriptor.imports().map(({ service, version }) => ({ service, version }));
	for (const version of descriptor.versions) {
		versions.set(version, create(ServiceVersionSchema, { version, imports }));
	}
	return create(ServiceSchema, {
		domain: domain || before.domain,
		groups: [...new Set([...before.groups, ...descriptor.groups])].sort(),
		versions: [...versions.values()].sort((a, b) => (a.version < b.version ? -1 : 1)),
	});
}
