import { musicModule } from "../music.ts";

export default musicModule();
