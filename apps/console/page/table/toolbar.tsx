import { useEffect, useState } from "react";
import type { TableSearch } from "../app/search.ts";
import { falseConditionWords } from "../model/conditions.ts";
import { Field } from "../parts/field.tsx";
import { TenancyPicker } from "./tenancy-picker.tsx";

/** What a table shows: the tenancy, the beginning of the names, and the words of the filter. */
export function Toolbar({
	units,
	search,
	onChange,
}: {
	readonly units: readonly ("partition" | "namespace")[];
	readonly search: TableSearch;
	readonly onChange: (change: Partial<TableSearch>) => void;
}) {
	return (
		<div className="toolbar" role="search" aria-label="Rows">
			{units.map((unit) => (
				<TenancyPicker
					key={unit}
					unit={unit}
					partition={search.partition ?? "*"}
					value={search[unit] ?? "*"}
					onChange={(value) =>
						onChange({
							[unit]: value === "*" ? "" : value,
							// A namespace is one of a partition.
							...(unit === "partition" && { namespace: "" }),
						})
					}
				/>
			))}
			<Field label="Name prefix">
				<TextInput
					label="Name prefix"
					placeholder="web-"
					value={search.prefix ?? ""}
					onChange={(prefix) => onChange({ prefix })}
				/>
			</Field>
			<Field label="Filter">
				<TextInput
					label="Filter"
					isFilter
					placeholder="words in any cell"
					value={search.q ?? ""}
					onChange={(q) => onChange({ q })}
				/>
			</Field>
			<button
				type="button"
				aria-pressed={search.q === falseConditionWords}
				onClick={() => onChange({ q: search.q === falseConditionWords ? "" : falseConditionWords })}
			>
				Only false conditions
			</button>
		</div>
	);
}

/** How long a pause in typing ends a value, in milliseconds. */
const pauseMs = 150;

/** A text that is passed on when typing pauses. */
function TextInput({
	label,
	placeholder,
	value,
	isFilter = false,
	onChange,
}: {
	readonly label: string;
	readonly placeholder: string;
	readonly value: string;
	readonly isFilter?: boolean;
	readonly onChange: (value: string) => void;
}) {
	const [text, setText] = useState(value);
	useEffect(() => setText(value), [value]);
	// biome-ignore lint/correctness/useExhaustiveDependencies: only typing starts the pause
	useEffect(() => {
		if (text === value) {
			return;
		}
		const timer = setTimeout(() => onChange(text.trim()), pauseMs);
		return () => clearTimeout(timer);
	}, [text]);
	return (
		<input
			type="search"
			aria-label={label}
			data-filter={isFilter ? "" : undefined}
			placeholder={placeholder}
			spellCheck={false}
			value={text}
			onChange={(event) => setText(event.target.value)}
			onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()}
		/>
	);
}
