import { Link } from "@tanstack/react-router";

/** The page of a link that leads nowhere. */
export function NotFound() {
	return (
		<div className="page">
			<h1>Not found</h1>
			<p>
				This link leads to no page of the console. <Link to="/">Go to the overview.</Link>
			</p>
		</div>
	);
}
