import { type ReactNode, useId } from "react";

/** A part of a page with a heading. */
export function Card({
	title,
	aside,
	wide = false,
	children,
}: {
	readonly title: string;
	/** Beside the heading. */
	readonly aside?: ReactNode;
	/** Whether it takes the whole width. */
	readonly wide?: boolean;
	readonly children: ReactNode;
}) {
	const id = useId();
	return (
		<section className={wide ? "card wide" : "card"} aria-labelledby={id}>
			<header>
				<h2 id={id}>{title}</h2>
				{aside !== undefined && <div className="aside">{aside}</div>}
			</header>
			<div className="card-body">{children}</div>
		</section>
	);
}
