import { rate } from "../model/format.ts";

const [width, height] = [160, 36];

/** Figures over time as a line from 0 to the highest, the newest at the right. It is muted if all are 0. */
export function Sparkline({
	values,
	label,
	format = rate,
}: {
	readonly values: readonly number[];
	readonly label: string;
	/** Says how high the highest is. */
	readonly format?: (value: number) => string;
}) {
	if (values.length < 2) {
		return <div className="sparkline" />;
	}
	const highest = Math.max(...values, 1e-9);
	const text = `${label}: at most ${format(Math.max(...values))}`;
	const step = width / (values.length - 1);
	const points = values.map(
		(value, at) =>
			`${(at * step).toFixed(1)},${(height - 2 - (value / highest) * (height - 4)).toFixed(1)}`,
	);
	return (
		<svg
			className={values.some((value) => value > 0) ? "sparkline" : "sparkline idle"}
			viewBox={`0 0 ${width} ${height}`}
			preserveAspectRatio="none"
			role="img"
			aria-label={text}
		>
			<title>{text}</title>
			<polygon points={`0,${height} ${points.join(" ")} ${width},${height}`} />
			<polyline points={points.join(" ")} />
		</svg>
	);
}
