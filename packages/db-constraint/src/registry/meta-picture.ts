import type { Resource } from "@plinth/proto";
import { decodeShared } from "@plinth/resource";
import type { DeploymentInfo } from "../environment.ts";
import { Deployment, Service } from "./meta-types.ts";

/** A deployment, with what only the registry needs to know of it. */
export interface RegisteredDeployment extends DeploymentInfo {
	/** Where other deployments reach it. */
	readonly address: string;
	/** The version that it is to switch to; empty where nothing is asked of it. */
	readonly wantedVersion: string;
	/** The incarnation of the storage that registered. */
	readonly storageIncarnation: string;
}

/** A service, as its deployments have described it. */
export interface RegisteredService {
	readonly name: string;
	readonly groups: readonly string[];
}

/** What one meta deployment says. */
interface Said {
	readonly deployments: Map<string, RegisteredDeployment>;
	readonly services: Map<string, RegisteredService>;
}

/**
 * What all meta deployments say together. Each keeps the deployments that registered with it:
 *
 *     meta in us-west2 ── iam-us-west2, devices-us-west2 ─┐
 *     meta in us-east1 ── iam-us-east1 ───────────────────┴─▶ the picture
 *
 * What one of them said stays until it says something else. Absence says nothing.
 */
export class MetaPicture {
	readonly #said = new Map<string, Said>();
	#all: ReadonlyMap<string, RegisteredDeployment> | undefined;

	/** A meta deployment, by its address, has or no longer has what the resource tells. */
	apply(source: string, resource: Resource, change: "stored" | "removed"): void {
		const said = this.#of(source);
		const { group, kind } = resource.id?.type ?? {};
		const uid = resource.id?.uid ?? "";
		this.#all = undefined;
		if (group === Deployment.type.group && kind === Deployment.type.kind) {
			update(said.deployments, uid, change === "stored" ? deploymentOf(resource) : undefined);
		} else if (group === Service.type.group && kind === Service.type.kind) {
			update(said.services, uid, change === "stored" ? serviceOf(resource) : undefined);
		}
	}

	/** A fresh snapshot of one type has ended: what was not in it is no longer said. */
	retain(source: string, type: "deployments" | "services", uids: ReadonlySet<string>): void {
		const said = this.#of(source)[type];
		for (const uid of said.keys()) {
			if (!uids.has(uid)) {
				said.delete(uid);
				this.#all = undefined;
			}
		}
	}

	/** All deployments, by uid. */
	deployments(): ReadonlyMap<string, RegisteredDeployment> {
		this.#all ??= new Map([...this.#said.values()].flatMap((said) => [...said.deployments]));
		return this.#all;
	}

	/** Whether the meta deployment has the deployment of that uid. */
	isSaidBy(source: string, uid: string): boolean {
		return this.#said.get(source)?.deployments.has(uid) ?? false;
	}

	/**
	 * The deployment that is in charge: not one whose resources another one has taken over, rather one
	 * that is not disabled, and of several the one that registered last.
	 */
	find(service: string, region: string): RegisteredDeployment | undefined {
		const candidates = [...this.deployments().values()].filter(
			(each) => each.service === service && each.region === region,
		);
		const superseded = new Set(candidates.map(({ predecessorUid }) => predecessorUid));
		const [first] = candidates
			.filter(({ uid }) => !superseded.has(uid))
			.sort((a, b) => Number(a.disabled) - Number(b.disabled) || (a.uid < b.uid ? 1 : -1));
		return first;
	}

	/** The name of the service that owns a group. */
	serviceOfGroup(group: string): string | undefined {
		for (const { services } of this.#said.values()) {
			for (const { name, groups } of services.values()) {
				if (groups.includes(group)) {
					return name;
				}
			}
		}
		return undefined;
	}

	#of(source: string): Said {
		let said = this.#said.get(source);
		if (said === undefined) {
			said = { deployments: new Map(), services: new Map() };
			this.#said.set(source, said);
		}
		return said;
	}
}

/** What a Deployment tells. */
export function deploymentOf(resource: Resource): RegisteredDeployment {
	const { data } = decodeShared(Deployment, resource);
	return {
		uid: resource.id?.uid ?? "",
		name: resource.id?.name ?? "",
		service: data.service,
		region: data.region,
		version: data.currentVersion,
		disabled: data.disabled,
		predecessorUid: data.predecessorUid,
		address: data.address,
		wantedVersion: data.wantedVersion,
		storageIncarnation: data.storageIncarnation,
		established: data.predecessorUid === "" || data.established,
	};
}

function serviceOf(resource: Resource): RegisteredService {
	return { name: resource.id?.name ?? "", groups: decodeShared(Service, resource).data.groups };
}

function update<Value>(map: Map<string, Value>, uid: string, value: Value | undefined): void {
	if (value === undefined) {
		map.delete(uid);
	} else {
		map.set(uid, value);
	}
}
