import type { Overview } from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { Link } from "@tanstack/react-router";
import { Fragment, type ReactNode } from "react";
import { falseConditionWords } from "../model/conditions.ts";
import { count, plural } from "../model/format.ts";
import { attentionOf, type CountedType, kindOf } from "./attention.ts";

/** So many types are named. */
const mostTypes = 3;

/** What needs attention, with links to it. */
export function AttentionLine({ overview }: { readonly overview: Overview }) {
	const { servers, controllers, falseConditions, staleConditions, deletions } =
		attentionOf(overview);
	const parts: ReactNode[] = [];
	if (servers > 0) {
		parts.push(`${plural(servers, "server")} without a report`);
	}
	if (controllers > 0) {
		parts.push(<Link to="/controllers">{plural(controllers, "controller")}</Link>);
	}
	if (falseConditions.length > 0) {
		parts.push(
			<Resources
				types={falseConditions}
				text={(of) => `${plural(of, "resource")} with a false condition`}
				words={falseConditionWords}
			/>,
		);
	}
	if (staleConditions.length > 0) {
		parts.push(
			<Resources
				types={staleConditions}
				text={(of) => `${plural(of, "resource")} with a stale one`}
				words="?"
			/>,
		);
	}
	if (deletions.length > 0) {
		parts.push(
			<Resources
				types={deletions}
				text={(of) => `${plural(of, "deletion")} waiting`}
				words="deleting"
			/>,
		);
	}
	return parts.length === 0 ? (
		<span className="muted">Nothing needs attention.</span>
	) : (
		<p className="bad-text">
			Needs attention:{" "}
			{parts.map((part, at) => (
				// biome-ignore lint/suspicious/noArrayIndexKey: a part is its position
				<Fragment key={at}>
					{at > 0 && ", "}
					{part}
				</Fragment>
			))}
		</p>
	);
}

/** How many resources there are, as a link if all are of one type; otherwise with a link to those of each type. */
function Resources({
	types,
	text,
	words,
}: {
	readonly types: readonly CountedType[];
	/** What is said of so many of them. */
	readonly text: (total: number) => string;
	/** What the status of these resources contains. */
	readonly words: string;
}) {
	const total = types.reduce((sum, each) => sum + each.count, 0);
	const shown = text(total);
	const [first] = types;
	if (types.length === 1 && first !== undefined) {
		return (
			<Link to="/types/$type" params={{ type: first.type }} search={{ q: words }}>
				{shown}
			</Link>
		);
	}
	return (
		<>
			{shown} (
			{types.slice(0, mostTypes).map((each, at) => (
				<Fragment key={each.type}>
					{at > 0 && ", "}
					<Link to="/types/$type" params={{ type: each.type }} search={{ q: words }}>
						{count(each.count)} {kindOf(each.type)}
					</Link>
				</Fragment>
			))}
			{types.length > mostTypes && ", …"})
		</>
	);
}
