import { Chat } from "./chat";

export default async function Page({ params }: { params: Promise<{ id: string }> }) {
  return <Chat sessionId={(await params).id} />;
}
