// Keys of backends[] that belong to Amazon Bedrock alone.

export const AWS_SETTINGS = ["region", "profile", "access_key_id", "secret_access_key", "session_token"] as const;
