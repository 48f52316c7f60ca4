import type { Resource } from "@plinth/proto";
import { decodeShared } from "@plinth/resource";
import type { DeploymentInfo } from "./environment.ts";
import { Deployment, Service } from "./meta-types.ts";

/** A deployment with the fields that only the registry needs. */
export interface RegisteredDeployment extends DeploymentInfo {
	/** Where other deployments reach it. */
	readonly address: string;
	/** The version that operators want it to switch to; empty if none. */
	readonly wantedVersion: string;
	/** The incarnation of the storage that registered. */
	readonly storageIncarnation: string;
}

/** A service, as described by its deployments. */
export interface RegisteredService {
	readonly name: string;
	readonly groups: readonly string[];
}

/** The contents of one meta deployment. */
interface MetaContents {
	readonly deployments: Map<string, RegisteredDeployment>;
	readonly services: Map<string, RegisteredService>;
}

/** What a registry view is asked for. */
interface Lookups {
	/** By uid. */
	readonly all: ReadonlyMap<string, RegisteredDeployment>;
	readonly byPlace: ReadonlyMap<string, readonly RegisteredDeployment[]>;
	/** By the uid of the predecessor. */
	readonly successors: ReadonlyMap<string, RegisteredDeployment>;
	/** The names of services, by the groups that they own. */
	readonly services: ReadonlyMap<string, string>;
}

/**
 * The merged contents of all meta deployments. Each keeps the deployments that registered with it:
 *
 *     meta in us-west2 ── iam-us-west2, devices-us-west2 ─┐
 *     meta in us-east1 ── iam-us-east1 ───────────────────┴─▶ the view
 *
 * The contents of a meta deployment stay until it reports a change. Absence proves nothing.
 */
export class RegistryView {
	readonly #contents = new Map<string, MetaContents>();
	/** What is looked up, made again after a change when it is needed. */
	#lookups: Lookups | undefined;

	/** Applies a change that a meta deployment, identified by its address, reports. */
	apply(source: string, resource: Resource, change: "stored" | "removed"): void {
		const contents = this.#of(source);
		const { group, kind } = resource.id?.type ?? {};
		const uid = resource.id?.uid ?? "";
		this.#lookups = undefined;
		if (group === Deployment.type.group && kind === Deployment.type.kind) {
			update(contents.deployments, uid, change === "stored" ? deploymentOf(resource) : undefined);
		} else if (group === Service.type.group && kind === Service.type.kind) {
			update(contents.services, uid, change === "stored" ? serviceOf(resource) : undefined);
		}
	}

	/** Completes a fresh snapshot of one type: removes what it does not contain. */
	retain(source: string, type: "deployments" | "services", uids: ReadonlySet<string>): void {
		const contents = this.#of(source)[type];
		for (const uid of contents.keys()) {
			if (!uids.has(uid)) {
				contents.delete(uid);
				this.#lookups = undefined;
			}
		}
	}

	/** All deployments, by uid. */
	deployments(): ReadonlyMap<string, RegisteredDeployment> {
		return this.#current.all;
	}

	/** The deployment that names another one as its predecessor. */
	successorOf(uid: string): RegisteredDeployment | undefined {
		return this.#current.successors.get(uid);
	}

	/** Whether the meta deployment has the deployment of that uid. */
	isReportedBy(source: string, uid: string): boolean {
		return this.#contents.get(source)?.deployments.has(uid) ?? false;
	}

	/**
	 * The responsible deployment: never one that was taken over by a successor; preferably one that is not
	 * disabled; of several, the one that registered last.
	 */
	find(service: string, region: string): RegisteredDeployment | undefined {
		const candidates = this.#current.byPlace.get(placeOf(service, region)) ?? [];
		const superseded = new Set(candidates.map(({ predecessorUid }) => predecessorUid));
		const [first] = candidates
			.filter(({ uid }) => !superseded.has(uid))
			.sort((a, b) => Number(a.disabled) - Number(b.disabled) || (a.uid < b.uid ? 1 : -1));
		return first;
	}

	/** The name of the service that owns a group. */
	serviceOfGroup(group: string): string | undefined {
		return this.#current.services.get(group);
	}

	get #current(): Lookups {
		this.#lookups ??= lookupsOf([...this.#contents.values()]);
		return this.#lookups;
	}

	#of(source: string): MetaContents {
		let contents = this.#contents.get(source);
		if (contents === undefined) {
			contents = { deployments: new Map(), services: new Map() };
			this.#contents.set(source, contents);
		}
		return contents;
	}
}

function lookupsOf(contents: readonly MetaContents[]): Lookups {
	const all = new Map(contents.flatMap(({ deployments }) => [...deployments]));
	const successors = new Map<string, RegisteredDeployment>();
	for (const each of all.values()) {
		if (each.predecessorUid !== "" && !successors.has(each.predecessorUid)) {
			successors.set(each.predecessorUid, each);
		}
	}
	const services = new Map<string, string>();
	for (const { name, groups } of contents.flatMap(({ services }) => [...services.values()])) {
		for (const group of groups) {
			services.set(group, services.get(group) ?? name);
		}
	}
	const byPlace = Map.groupBy(all.values(), ({ service, region }) => placeOf(service, region));
	return { all, byPlace, successors, services };
}

function placeOf(service: string, region: string): string {
	return `${service}@${region}`;
}

/** The fields of a Deployment resource. */
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
