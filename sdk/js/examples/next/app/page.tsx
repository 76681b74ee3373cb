import { redirect } from "next/navigation";
import { TidegateClient } from "@tidegate/client";

export const dynamic = "force-dynamic";

/** Creates a session, and shows it. */
export default async function Page() {
  const client = new TidegateClient({ baseUrl: process.env.NEXT_PUBLIC_TIDEGATE! });
  const { id } = await client.sessions.create();
  redirect(`/chat/${id}`);
}
