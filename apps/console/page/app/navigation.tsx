import type { KnownType } from "@plinth/documents";
import { Link, useLocation } from "@tanstack/react-router";
import { useEffect, useId, useState } from "react";
import { useTypes } from "./types-query.ts";

/** The links to all pages, and to the types by their packages. The link to what is shown, or to what it belongs to, is marked. */
export function Navigation() {
	const types = useTypes();
	const { pathname } = useLocation();
	// In a narrow window, the types are a menu.
	const [isOpen, setOpen] = useState(false);
	const menu = useId();
	// biome-ignore lint/correctness/useExhaustiveDependencies: another page closes it
	useEffect(() => setOpen(false), [pathname]);
	const shown = types?.all.find(({ key }) => isAbout(pathname, key));
	const groups = Map.groupBy(types?.all ?? [], packageOf);
	return (
		<nav
			className="side"
			aria-label="Pages"
			onKeyDown={({ key }) => key === "Escape" && setOpen(false)}
		>
			<ul>
				<li>
					<Link to="/" activeOptions={{ exact: true }}>
						Overview
					</Link>
				</li>
				<li>
					<Link to="/controllers" {...markedIf(pathname === "/flow")}>
						Controllers
					</Link>
				</li>
				<li>
					<Link to="/types" activeOptions={{ exact: true }}>
						Types
					</Link>
				</li>
			</ul>
			{types !== undefined && (
				<button
					type="button"
					className="menu-button"
					aria-expanded={isOpen}
					aria-controls={menu}
					onClick={() => setOpen(!isOpen)}
				>
					{shown?.type.kind ?? "All types"} {isOpen ? "▴" : "▾"}
				</button>
			)}
			<div id={menu} className={isOpen ? "type-groups open" : "type-groups"}>
				{[...groups].map(([name, all]) => (
					<TypeGroup key={name} name={name} types={all} pathname={pathname} />
				))}
			</div>
		</nav>
	);
}

function TypeGroup({
	name,
	types,
	pathname,
}: {
	readonly name: string;
	readonly types: readonly KnownType[];
	/** That of the page that is shown. */
	readonly pathname: string;
}) {
	return (
		<>
			<h2>{name}</h2>
			<ul>
				{types.map(({ key, type }) => (
					<li key={key}>
						<Link
							to="/types/$type"
							params={{ type: key }}
							{...markedIf(pathname === `/create/${key}`)}
						>
							{type.kind}
						</Link>
					</li>
				))}
			</ul>
		</>
	);
}

/** Marks a link as the router marks those whose paths are a beginning of the path. */
function markedIf(isMarked: boolean) {
	return isMarked ? ({ className: "active", "aria-current": "true" } as const) : {};
}

/** Whether a page is that of a type, or of one of its resources. */
function isAbout(pathname: string, key: string): boolean {
	return [`/types/${key}`, `/create/${key}`].some(
		(each) => pathname === each || pathname.startsWith(`${each}/`),
	);
}

function packageOf({ type }: KnownType): string {
	return `${type.group}.${type.groupVersion}`;
}
