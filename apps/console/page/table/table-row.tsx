import { Link } from "@tanstack/react-router";
import { memo, useEffect, useRef } from "react";
import type { SentRow } from "../live/view.ts";
import { Age } from "../parts/age.tsx";

/** For how long a change can be seen, in milliseconds. */
const flashMs = 1_600;

/** One resource. It flashes when it changes, and is marked while it is being deleted. */
export const TableRow = memo(function TableRow({
	row,
	type,
	index,
	top,
	units,
	isNameFirst,
}: {
	readonly row: SentRow;
	/** The name of the type. */
	readonly type: string;
	readonly index: number;
	/** Its position, in pixels. */
	readonly top: number;
	readonly units: readonly ("partition" | "namespace")[];
	/** Whether the name and the status come before all else. */
	readonly isNameFirst: boolean;
}) {
	const element = useRef<HTMLDivElement>(null);
	useFlash(element, row.changedMs);
	const { text, tone } = row.status;
	const name = (
		<div role="cell" className="name">
			<Link
				to="/types/$type/$name"
				params={{ type, name: row.name }}
				search={{ partition: row.partition, namespace: row.namespace }}
				preload={false}
			>
				{row.name}
			</Link>
		</div>
	);
	const status = (
		<div role="cell" title={text} className={`status ${tone}`}>
			{text !== "" && <span className="dot" aria-hidden="true" />}
			<span>{text}</span>
		</div>
	);
	return (
		<div
			ref={element}
			className={row.isBeingDeleted ? "row deleting" : "row"}
			role="row"
			aria-rowindex={index + 2}
			data-index={index}
			data-name={row.name}
			data-changed={row.changedMs}
			style={{ transform: `translateY(${top}px)` }}
		>
			{isNameFirst && name}
			{isNameFirst && status}
			{units.map((unit) => (
				<div key={unit} role="cell" className="muted">
					{row[unit]}
				</div>
			))}
			{!isNameFirst && name}
			{row.cells.map((cell, at) => (
				// biome-ignore lint/suspicious/noArrayIndexKey: a column is its position
				<div key={at} role="cell" title={cell}>
					{cell}
				</div>
			))}
			{!isNameFirst && status}
			<div role="cell" className="number muted">
				<Age ms={row.createdMs} />
			</div>
		</div>
	);
});

/** Colors an element for a moment, unless the user wants no motion. */
function useFlash(
	element: React.RefObject<HTMLDivElement | null>,
	changedMs: number | undefined,
): void {
	useEffect(() => {
		const passedMs = Date.now() - (changedMs ?? 0);
		if (passedMs >= flashMs || matchMedia("(prefers-reduced-motion: reduce)").matches) {
			return;
		}
		const color = getComputedStyle(document.documentElement).getPropertyValue("--flash");
		const flash = element.current?.animate(
			[{ backgroundColor: color }, { backgroundColor: "transparent" }],
			{ duration: flashMs, delay: -passedMs, easing: "ease-out" },
		);
		return () => flash?.cancel();
	}, [element, changedMs]);
}
