import { create } from "@bufbuild/protobuf";
import { Device, Project, Rack } from "@plinth/example-regions/types";
import { idOf, referenceTo, resourceOf } from "@plinth/resource";
import { createServer, type Server } from "@plinth/server";
import { defineModule } from "@plinth/server/module";

/** A server with racks and devices, which reference with all options. */
export interface RacksServer {
	readonly server: Server;
	/** The URL of the console. */
	readonly url: string;
}

/** Starts a server with the types of the regions example, as one deployment that has all of them. */
export async function startRacksServer(): Promise<RacksServer> {
	const server = createServer({
		storage: { kind: "memory" },
		listen: { host: "127.0.0.1", port: 0 },
		modules: [defineModule({ name: "racks", types: [Project, Rack, Device] })],
	});
	await server.start();
	return { server, url: `${server.address}/console/` };
}

/** Declares a project with a rack, and devices in the rack that are lent to another project. */
export async function declareRack(
	{ client }: Pick<Server, "client">,
	name: string,
	devices: readonly string[],
): Promise<void> {
	for (const project of [`${name}-project`, "guests"]) {
		await client.write({ resource: resourceOf(Project, { id: idOf(Project, project) }) });
	}
	const rack = create(Rack.schema, { project: referenceTo(idOf(Project, `${name}-project`)) });
	await client.write({ resource: resourceOf(Rack, { id: idOf(Rack, name), data: rack }) });
	for (const device of devices) {
		const data = create(Device.schema, {
			model: "m1",
			rack: referenceTo(idOf(Rack, name)),
			lentTo: referenceTo(idOf(Project, "guests")),
		});
		await client.write({ resource: resourceOf(Device, { id: idOf(Device, device), data }) });
	}
}

/** Deletes a rack whose device has a finalizer that nothing removes: the deletion waits. */
export async function deleteStuckRack(
	{ client }: Pick<Server, "client">,
	rack: string,
	device: string,
): Promise<void> {
	const { resource } = await client.read({ id: idOf(Device, device) });
	if (resource !== undefined) {
		resource.metadata.finalizers = "backup.example/copied";
		await client.write({ resource });
	}
	await client.delete({ id: idOf(Rack, rack) });
}
