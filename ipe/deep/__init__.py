"""Deep epsilon-IPE: DQN whose behaviour comes from the evaluation policy of its values, many seeds at once."""
