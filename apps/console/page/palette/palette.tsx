import { ResourceService } from "@plinth/proto";
import { gvkKey, hasNamespace, hasPartition, typeOf } from "@plinth/resource";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, useState } from "react";
import { useConnection } from "../app/connection.ts";
import { toggleTheme } from "../app/theme.ts";
import { useTypes } from "../app/types-query.ts";
import { Dialog } from "./dialog.tsx";
import {
	matchingEntries,
	mostEntries,
	type PaletteEntry,
	type ResourceSearchText,
	resourceSearchOf,
} from "./entries.ts";

/** Leads to any page, type or resource, and runs actions. */
export function Palette({ onClose }: { readonly onClose: () => void }) {
	const [text, setText] = useState("");
	const [selected, setSelected] = useState(0);
	const types = useTypes();
	const search = types && resourceSearchOf(types, text);
	const resources = useResourceEntries(search);
	const entries = [...resources.entries, ...matchingEntries(useFixedEntries(), text)].slice(
		0,
		mostEntries,
	);
	const at = Math.min(selected, entries.length - 1);
	const run = (entry: PaletteEntry | undefined) => {
		if (entry !== undefined) {
			onClose();
			entry.run();
		}
	};
	const onKeyDown = (event: KeyboardEvent) => {
		const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
		if (step !== 0) {
			event.preventDefault();
			setSelected((at + step + entries.length) % Math.max(1, entries.length));
		} else if (event.key === "Enter") {
			event.preventDefault();
			run(entries[at]);
		}
	};
	return (
		<Dialog label="Go to" className="palette" onClose={onClose}>
			<input
				role="combobox"
				aria-label="Go to a type, resource or action"
				aria-expanded="true"
				aria-controls="palette-entries"
				aria-activedescendant={entries.length > 0 ? `palette-${at}` : undefined}
				placeholder="A type, a page, an action; or a type and the beginning of a name"
				spellCheck={false}
				value={text}
				onKeyDown={onKeyDown}
				onChange={(event) => {
					setText(event.target.value);
					setSelected(0);
				}}
			/>
			<div id="palette-entries" role="listbox" aria-label="Matches">
				{entries.map((entry, index) => (
					// biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the field
					<div
						key={entry.key}
						id={`palette-${index}`}
						role="option"
						tabIndex={-1}
						aria-selected={index === at}
						onClick={() => run(entry)}
					>
						<span>{entry.title}</span>
						<span className="muted">{entry.detail}</span>
						<span className="muted kind">{entry.kind}</span>
					</div>
				))}
			</div>
			{entries.length === 0 && <p className="muted none">Nothing matches.</p>}
			{resources.hasMore && (
				<p className="muted none">More names begin so: go on typing, or open the type.</p>
			)}
		</Dialog>
	);
}

/** The pages, the types and the actions. */
function useFixedEntries(): readonly PaletteEntry[] {
	const navigate = useNavigate();
	const { session } = useConnection();
	const types = useTypes();
	return [
		{ key: "overview", title: "Overview", kind: "page", run: () => void navigate({ to: "/" }) },
		{
			key: "controllers",
			title: "Controllers",
			kind: "page",
			run: () => void navigate({ to: "/controllers" }),
		},
		{
			key: "flow",
			title: "Graph of controllers",
			kind: "page",
			run: () => void navigate({ to: "/flow" }),
		},
		{ key: "types", title: "Types", kind: "page", run: () => void navigate({ to: "/types" }) },
		...(types?.all ?? []).map(({ key, type }) => ({
			key,
			title: type.kind,
			detail: `${type.group}.${type.groupVersion}`,
			kind: "type",
			run: () => void navigate({ to: "/types/$type", params: { type: key } }),
		})),
		...(types?.all ?? []).map(({ key, type }) => ({
			key: `create ${key}`,
			title: `Create ${type.kind}`,
			detail: `${type.group}.${type.groupVersion}`,
			kind: "action",
			run: () => void navigate({ to: "/create/$type", params: { type: key } }),
		})),
		{ key: "theme", title: "Switch between dark and light", kind: "action", run: toggleTheme },
		...(session.token === ""
			? []
			: [{ key: "sign-out", title: "Sign out", kind: "action", run: () => session.signOut() }]),
	];
}

interface ResourceEntries {
	readonly entries: readonly PaletteEntry[];
	/** Whether there are resources that match and are not among them. */
	readonly hasMore: boolean;
}

function useResourceEntries(search: ResourceSearchText | undefined): ResourceEntries {
	const navigate = useNavigate();
	const connection = useConnection();
	const { data } = useQuery({
		queryKey: ["palette", search?.type.key, search?.namePrefix],
		enabled: search !== undefined,
		queryFn: ({ signal }) => firstOf(search, connection, signal),
	});
	const entries = (data?.resources ?? []).flatMap(({ id }) => {
		const { partition = "", namespace = "" } = id?.tenancy ?? {};
		const type = id?.type;
		if (id === undefined || type === undefined) {
			return [];
		}
		return {
			key: `${gvkKey(type)}/${partition}/${namespace}/${id.name}`,
			title: id.name,
			detail: [partition, namespace].filter(Boolean).join("/"),
			kind: type.kind,
			run: () =>
				void navigate({
					to: "/types/$type/$name",
					params: { type: gvkKey(type), name: id.name },
					search: { partition, namespace },
				}),
		};
	});
	return { entries, hasMore: data?.hasMore ?? false };
}

async function firstOf(
	search: ResourceSearchText | undefined,
	connection: ReturnType<typeof useConnection>,
	signal: AbortSignal,
) {
	if (search === undefined) {
		return { resources: [], hasMore: false };
	}
	const { type, scope } = search.type;
	const { resources, nextPageToken } = await connection.client(ResourceService).list(
		{
			type: typeOf(type),
			tenancy: {
				partition: hasPartition(scope) ? "*" : "",
				namespace: hasNamespace(scope) ? "*" : "",
			},
			namePrefix: search.namePrefix,
			pageSize: 8,
		},
		{ signal },
	);
	return { resources, hasMore: nextPageToken !== "" };
}
