import type { JsonValue } from "@bufbuild/protobuf";
import type { MergeConflict } from "./merge-documents.ts";

/** Fields that two people have changed, each with the values to choose from. */
export function ConflictList({
	conflicts,
	onChoose,
}: {
	readonly conflicts: readonly MergeConflict[];
	readonly onChoose: (conflict: MergeConflict, value: JsonValue | undefined) => void;
}) {
	if (conflicts.length === 0) {
		return null;
	}
	return (
		<ul className="conflicts" aria-label="Conflicts">
			{conflicts.map((conflict) => {
				const path = conflict.path.join(".");
				return (
					<li key={path}>
						<code>{path}</code>
						<button type="button" onClick={() => onChoose(conflict, conflict.mine)}>
							Mine: {textOf(conflict.mine)}
						</button>
						<button type="button" onClick={() => onChoose(conflict, conflict.theirs)}>
							Theirs: {textOf(conflict.theirs)}
						</button>
					</li>
				);
			})}
		</ul>
	);
}

/** A value in one line, cut. */
function textOf(value: JsonValue | undefined): string {
	const whole = value === undefined ? "removed" : JSON.stringify(value);
	return whole.length <= 60 ? whole : `${whole.slice(0, 60)}…`;
}
