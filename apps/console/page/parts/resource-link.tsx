import type { TenancyLike, TypeLike } from "@plinth/resource";
import { Link } from "@tanstack/react-router";
import { useTypes } from "../app/types-query.ts";
import { typeOfFamily } from "../model/known-types.ts";

/** What names a resource: a group version is not always known. */
export interface LinkedResource {
	readonly type: Omit<TypeLike, "groupVersion"> & { readonly groupVersion?: string };
	readonly tenancy: TenancyLike;
	readonly name: string;
	/** Of another region. */
	readonly region?: string;
}

/** A link to a resource, if it is of a type and region that this server has; otherwise its name. */
export function ResourceLink({ resource }: { readonly resource: LinkedResource }) {
	const types = useTypes();
	const { type, tenancy, name, region = "" } = resource;
	const { partition = "", namespace = "" } = tenancy;
	const path = [partition, namespace, name].filter(Boolean).join("/");
	const known = types && typeOfFamily(types, type);
	const text = (
		<>
			<span className="muted">{type.kind}</span> {path}
		</>
	);
	return region !== "" || known === undefined ? (
		<span>
			{text}
			{region !== "" && <span className="muted"> in {region}</span>}
		</span>
	) : (
		<Link
			to="/types/$type/$name"
			params={{ type: known.key, name }}
			search={{ partition, namespace }}
		>
			{text}
		</Link>
	);
}
