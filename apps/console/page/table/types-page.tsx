import { columnsOf } from "@plinth/documents";
import { scopeName } from "@plinth/resource";
import { Link } from "@tanstack/react-router";
import { useTypes } from "../app/types-query.ts";
import { count } from "../model/format.ts";
import { useOverview } from "../overview/use-overview.ts";
import { Card } from "../parts/card.tsx";
import { TypeName } from "../parts/type-name.tsx";

/** All types that the caller may use. */
export function TypesPage() {
	const types = useTypes();
	const { overview, state } = useOverview();
	const counts = new Map(overview?.types.map(({ type, resources }) => [type, resources]));
	const hasCounts = state.phase !== "refused";
	return (
		<div className="page">
			<h1>Types</h1>
			<Card title="Registered types" aside={types && `${types.all.length}`} wide>
				<div className="scroll-x">
					<table>
						<thead>
							<tr>
								<th scope="col">Type</th>
								{hasCounts && (
									<th scope="col" className="number">
										Resources
									</th>
								)}
								<th scope="col">Scope</th>
								<th scope="col" title="The fields that the table of the type shows">
									Columns of its table
								</th>
								<th scope="col">Protobuf message</th>
							</tr>
						</thead>
						<tbody>
							{types?.all.map(({ key, scope, schema }) => (
								<tr key={key}>
									<td>
										<Link to="/types/$type" params={{ type: key }}>
											<TypeName of={key} />
										</Link>
									</td>
									{hasCounts && (
										<td className="number">
											{overview === undefined ? "–" : count(counts.get(key) ?? 0n)}
										</td>
									)}
									<td>{scopeName(scope)}</td>
									<td className="muted">
										{columnsOf(schema)
											.map(({ heading }) => heading.toLowerCase())
											.join(", ") || "–"}
									</td>
									<td className="muted">{schema.typeName}</td>
								</tr>
							))}
						</tbody>
					</table>
				</div>
			</Card>
		</div>
	);
}
