import type { Json } from "./api.fixture.ts";

const tenancy = { partition: "default", namespace: "default" } as const;

/** A resource's ID. */
export function idOf(group: string, groupVersion: string, kind: string, name: string): Json {
	const type = { group, groupVersion, kind };
	return { name, type, ...(group === "meta" ? {} : { tenancy }) };
}

/** A reference, to another region where one is named. */
export function to(name: string, region?: string): Json {
	return { name, tenancy, ...(region !== undefined && { region }) };
}

/** A project of `iam`. */
export function project(name: string): Json {
	return {
		id: idOf("iam", "v1", "Project", name),
		data: { "@type": "type.googleapis.com/regions.iam.v1.Project", title: name },
	};
}

/** A rack of `devices`. */
export function rack(name: string, fields: Json, version = "v1"): Json {
	return {
		id: idOf("devices", version, "Rack", name),
		data: { "@type": `type.googleapis.com/regions.devices.${version}.Rack`, ...fields },
	};
}

/** A device of `devices`. */
export function device(name: string, fields: Json, version = "v1"): Json {
	return {
		id: idOf("devices", version, "Device", name),
		data: { "@type": `type.googleapis.com/regions.devices.${version}.Device`, ...fields },
	};
}

/** The Deployment of that name. */
export function deployment(name: string): Json {
	return idOf("meta", "v1", "Deployment", name);
}
